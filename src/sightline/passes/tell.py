"""The pass that describes images in text, for models without vision and for turns that are over.

Several images of a turn can also be described together. A turn may bring more images with each of its steps, and each
time all images so far are described jointly. A joint description from an earlier step stays where it is: moving it
would invalidate the prompt cache for everything behind it.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import groupby

from sightline.model.facts import (
    ConversationHistory,
    DescribeImage,
    DescribeTogether,
    Description,
    Facts,
    JointDescription,
    Need,
    Needs,
    RecallHistory,
    Routing,
    Rules,
)
from sightline.model.image import CHARACTERS_PER_TOKEN
from sightline.model.profile import ImageLimits
from sightline.model.refusal import Refusal
from sightline.model.scene import NO_TURN, Fate, InlineSource, Refused, Scene, Shown, Sight, Source, Told
from sightline.model.value import value_class
from sightline.passes.frontier import HistoryImage, compute_frontier
from sightline.passes.retain import iter_history
from sightline.passes.wording import write_absence, write_description, write_joint_description

_NEVER_STALE = 1 << 30  # steps: a joint description does not become stale while its turn goes on
TURN_OVER = "its turn is over"
_OFF = Refusal(
    "not_permitted",
    "this model takes no images and describing them is switched off",
    "run: sightline config set mode fallback",
)
_PLACEHOLDER_TEXT = "word " * 600  # about 600 tokens, in place of a description where tokens are only counted


def tell(scene: Scene, facts: Facts, rules: Rules) -> Scene | Needs:
    """Describe the sights that the model gets in text, or refuse them."""
    if not rules.is_blind and not rules.pixels_this_turn_only:  # as nearly always
        return scene
    flags = flag_sights_to_tell(scene, rules)
    if not any(flags):
        return scene
    groups = find_joint_groups(scene, rules)
    needs: set[Need] = {need for need in collect_joint_needs(groups, rules) if need not in facts}
    sights: list[Sight] = []
    question_tool = scene.find_own_tool("analyze_image")
    for sight, need, is_told in zip(scene.sights, _list_looks(scene, rules), flags, strict=True):
        if not is_told:
            sights.append(sight)
            continue
        decided = sight.fate or (Shown() if sight.pixels_only else None)
        outcome = decided or _choose_fate(sight, need, facts, rules, question_tool)
        if isinstance(outcome, DescribeImage):
            needs.add(outcome)
        else:
            sights.append(sight.with_fate(outcome))
    if needs:
        return Needs(frozenset(needs))
    described = replace(scene, sights=tuple(sights))
    joints = find_joint_descriptions(groups, facts)
    return (
        _append_joints(described, joints, find_old_joints(described, groups, joints, facts, rules))
        if joints
        else described
    )


def flag_sights_to_tell(scene: Scene, rules: Rules) -> list[bool]:
    """Return for each sight whether it is described: all for a model without vision, else those of earlier turns."""
    if rules.is_blind or not rules.pixels_this_turn_only:
        return [rules.is_blind] * len(scene.sights)
    starts = scene.turn_starts
    current = starts[-1] if starts else NO_TURN
    return [_get_turn(sight, starts) != current and not sight.pixels_only for sight in scene.sights]


def explain_telling(rules: Rules) -> str:
    """Return why a sight is described."""
    if rules.profile.vision is False:
        return "the model takes no images"
    return "the mode is always" if rules.mode == "always" else "it is from an earlier turn"


def _get_turn(sight: Sight, turn_starts: Sequence[int]) -> int:
    return turn_starts[sight.message] if sight.message < len(turn_starts) else NO_TURN


def _list_looks(scene: Scene, rules: Rules) -> list[DescribeImage]:
    """Return the need for each sight. An image that occurs twice in one turn is described once."""
    # The newest are described first: describing a whole long history may cost more than it is worth.
    newest = len(scene.sights) - rules.max_images if rules.max_images else 0
    starts, first = scene.turn_starts, dict[tuple[Source, int], int]()
    looks = []
    for index, sight in enumerate(scene.sights):
        message = first.setdefault((sight.source, _get_turn(sight, starts)), sight.message)
        looks.append(DescribeImage(sight.source, not rules.may_pay, message, over_limit=index < newest))
    return looks


def _choose_fate(
    sight: Sight, need: DescribeImage, facts: Facts, rules: Rules, question_tool: str | None
) -> Fate | DescribeImage:
    if rules.mode == "off":
        return Refused(write_absence(_OFF, sight.filename), _OFF)
    match facts.get(need, Description):
        case None:
            return need
        case Description() as seen:
            words = write_description(seen, sight.filename, question_tool)
            return Told(words, seen.seer, seen.size, explain_telling(rules))
        case Refusal() if not rules.may_pay:
            return Told(_PLACEHOLDER_TEXT, "nobody yet", why=explain_telling(rules))
        case Refusal() as refusal:
            return Refused(write_absence(refusal, sight.filename), refusal)


@value_class
class JointGroup:
    """The images of a turn up to one of its steps, which are described together."""

    sight_index: int  # of the last image, whose text gets the joint description
    turn: int
    need: DescribeTogether


def find_joint_groups(scene: Scene, rules: Rules) -> list[JointGroup]:
    """Return a group for each step that brought more images to a turn, up to the largest number allowed."""
    limit = min(rules.max_joint_images, rules.max_images or rules.max_joint_images)
    if rules.mode == "off" or limit < 2 or len(scene.sights) < 2:
        return []
    starts, flags = scene.turn_starts, flag_sights_to_tell(scene, rules)
    to_describe = [(index, sight) for index, sight in enumerate(scene.sights) if flags[index] and not sight.pixels_only]
    return [
        group
        for turn, sights in groupby(to_describe, key=lambda each: _get_turn(each[1], starts))
        for group in _group_turn(turn, list(sights), scene, rules, limit)
    ]


def _group_turn(
    turn: int, sights: Sequence[tuple[int, Sight]], scene: Scene, rules: Rules, limit: int
) -> Iterator[JointGroup]:
    readable: dict[str, Sight] = {}
    has_unreadable = False
    ends, last = scene.request_ends, len(scene.messages) - 1
    for step, arrived in groupby(sights, key=lambda each: bisect_left(ends, each[1].message)):
        known, last_index = len(readable), -1
        for index, sight in arrived:
            if sight.fate is None and isinstance(sight.source, InlineSource):
                readable.setdefault(sight.source.key, sight)
                last_index = index
            else:
                has_unreadable = True
        if len(readable) + has_unreadable > limit:
            return
        if len(readable) > known and len(readable) + has_unreadable > 1:
            is_newest = step >= len(ends) or ends[step] == last  # older groups are not paid for any more
            images = tuple(each.source for each in readable.values() if isinstance(each.source, InlineSource))
            names = tuple(each.filename or "" for each in readable.values())
            message = scene.sights[last_index].message
            cached_only = not (is_newest and rules.may_pay)
            yield JointGroup(
                last_index, turn, DescribeTogether(images, names, message, cached_only, not has_unreadable)
            )


def collect_joint_needs(groups: Sequence[JointGroup], rules: Rules) -> Iterator[Need]:
    """Yield the needs of the groups, and the history if cost decides how long joint descriptions stay.

    The history is needed with the first group: the record must see every request to know when a cache is cold.
    """
    yield from (group.need for group in groups)
    if groups and _get_kept_turns(rules) is None:
        yield RecallHistory()


def _get_kept_turns(rules: Rules) -> int | None:
    """Return after how many turns joint descriptions are removed; None: when keeping them costs more."""
    return 0 if rules.joint_by_turn else rules.retention.kept_turns


def find_joint_descriptions(groups: Sequence[JointGroup], facts: Facts) -> dict[int, JointDescription]:
    """Return the joint descriptions by the indexes of their sights."""
    answers = ((group.sight_index, facts.get(group.need, JointDescription)) for group in groups)
    return {index: answer for index, answer in answers if isinstance(answer, JointDescription)}


def find_old_joints(
    scene: Scene, groups: Sequence[JointGroup], joints: Mapping[int, JointDescription], facts: Facts, rules: Rules
) -> dict[int, str]:
    """Return the joint descriptions that are removed by now, and why; `scene` has its sights told already."""
    kept_turns = _get_kept_turns(rules)
    if kept_turns is not None:
        turns = sorted({NO_TURN, *scene.turn_starts})
        ages = {group.sight_index: len(turns) - 1 - turns.index(group.turn) for group in groups}
        return {index: TURN_OVER for index in joints if ages[index] > kept_turns}
    history = facts.get(RecallHistory(), ConversationHistory)
    if not isinstance(history, ConversationHistory) or rules.retention.is_off or scene.is_partial:
        return {}
    return _find_costly_joints(scene, joints, history, rules)


def _find_costly_joints(
    scene: Scene, joints: Mapping[int, JointDescription], history: ConversationHistory, rules: Rules
) -> dict[int, str]:
    """Apply the fold that retires images to the joint descriptions of earlier turns."""
    texts: list[tuple[int, HistoryImage]] = []
    for index, sight in enumerate(scene.sights):
        if isinstance(sight.fate, Told | Refused):
            tokens = len(sight.fate.text) // CHARACTERS_PER_TOKEN
            texts.append((index, HistoryImage(sight.message, tokens, is_permanent=True)))
        if index in joints:
            tokens = len(write_joint_description(joints[index])) // CHARACTERS_PER_TOKEN
            texts.append((index, HistoryImage(sight.message, tokens)))
    removals = compute_frontier(
        iter_history(scene, history),
        [text for _, text in texts],
        rules.profile.cache,
        ImageLimits(),
        newest=0,
        window=_NEVER_STALE,
    )
    return {texts[number][0]: removal.why for number, removal in removals.items()}


def _append_joints(scene: Scene, joints: Mapping[int, JointDescription], removed: Mapping[int, str]) -> Scene:
    """Append joint descriptions to the texts of their sights; the receipt names those that were removed, too."""
    sights = list(scene.sights)
    for index, joint in joints.items():
        fate = sights[index].fate
        assert isinstance(fate, Told | Refused), "sights of a group are told or refused"
        if index not in removed:
            fate = replace(fate, text=f"{fate.text}\n{write_joint_description(joint)}")
        if isinstance(fate, Told):
            what = f"{len(joint.images)} images together"
            why = f"; {what} no longer ({removed[index]})" if index in removed else f", {what} by {joint.seer}"
            fate = replace(fate, seer=f"{fate.seer}{why}")
        sights[index] = replace(sights[index], fate=fate)
    return replace(scene, sights=tuple(sights))


def choose_route(scene: Scene, image_model: str) -> Routing:
    """Choose between the requested model and `image_model`, which takes the turns that have images.

    From the first image of a turn on, its messages were written by `image_model`.
    """
    starts = scene.turn_starts
    first_image: dict[int, int] = {}  # by turn, the index of the first message with an image
    for sight in scene.sights:
        turn = _get_turn(sight, starts)
        first_image[turn] = min(sight.message, first_image.get(turn, sight.message))
    current = starts[-1] if starts else NO_TURN
    has_image = current in first_image
    answers = [index for index, message in enumerate(scene.messages) if message.role == "assistant"]
    by_image_model = {i for i in answers if starts[i] in first_image and i > first_image[starts[i]]}
    foreign = frozenset(answers) - by_image_model if has_image else frozenset(by_image_model)
    return Routing(image_model if has_image else scene.model, scene.model, current, foreign)
