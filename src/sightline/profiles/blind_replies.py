"""Recognize a reply in which a model says nothing but that it can't see the images of a prompt.

A reply may quote such a sentence from a screenshot, or discuss it, so a phrase somewhere in it means nothing. The reply
has to be short, and each of its clauses has to be an admission ("I can't view images") or something that usually goes
with one: an apology, a request for a description or for the image, advice to use another model. At least one must be an
admission. Advice of any other kind ("Please run chmod") shows that the reply is about an image file of a program.
"""

from __future__ import annotations

import re

MAX_REPLY_LENGTH = 600  # characters: a longer reply says more than that the model can't see images


def _alternate(*patterns: str) -> str:
    return f"(?:{'|'.join(patterns)})"


_NOT = _alternate("can(?:'t|not| not)", "could(?:n't| not)")
_NO = _alternate("don't", "do not", "doesn't", "does not")
_ADVERB = r"(?:(?:currently|directly|actually|really|unfortunately|yet|also|simply) )?"
_VERB = (
    r"(?:see|view|read|process|analy[sz]e|interpret|open|look at|access|inspect|examine|display|handle|load|perceive"
    r"|make out)"
)
_VERBS = rf"{_ADVERB}{_VERB}(?:(?:,| or| and) {_ADVERB}{_VERB})*"
_PICTURE = (
    r"(?:image|screenshot|picture|photo|graphic)(?: (?:file|content|input|attachment|data))?s?"
    r"|visual (?:content|information|input|data)s?|visuals|attachments?|(?:attached )?media"
)
_SENT = (
    r"(?: (?:that )?you(?:'ve| have|'re| are)? (?:just )?(?:sent|attached|pasted|shared|uploaded|mentioned|provided)"
    r"| directly| here| yet| myself| at all| attached| at (?:this time|the moment)| right now| for now"
    r"| (?:in|with) (?:this|the current|our) [a-z]+(?: [a-z]+)?)?"
)
_IMAGES = (
    r"(?:(?:the|this|that|these|those|your|any|an?|attached|pasted|uploaded|embedded) )*"
    rf"(?:{_PICTURE})(?: (?:or|and) (?:other )?(?:{_PICTURE}))*{_SENT}"
)
_UNABLE = _alternate(
    _NOT,
    rf"(?:am|'m) {_ADVERB}(?:unable|not able) to",
    rf"{_NO} {_ADVERB}have (?:the|any|an?) (?:ability|capability|capacity|means|way) to",
    r"have no (?:ability|capability|means|way) to",
    r"lack the (?:ability|capability|capacity) to",
)
_VIEWING = r"(?:seeing|viewing|reading|processing|analy[sz]ing|interpreting|looking at)"
_MODEL = (
    r"(?:(?:this|the(?: (?:current|selected|active|configured|underlying|chosen))?|my(?: current)?)"
    r" (?:ai |language )?model"
    r"(?: (?:that )?(?:i'm|i am|you're|you are|you've|is)?(?: currently)? ?(?:running on|using|on|selected|in use))?)"
)
_VISION = (
    r"(?:vision|multi-?modal(?: inputs?)?|visual inputs?|(?:image|picture|screenshot)(?:[ -](?:inputs?|uploads?))?s?)"
)
_HERE = r"(?: (?:in|with) (?:this|the current) [a-z]+)?"
_SHARED = r"(?:attached|included|sent|received|shared)"
_GIVEN = r"(?:attached|included|provided|uploaded|sent|received|shared|visible|present)"
_PLACE = r"(?:to|in|with) (?:your|this|our|the) (?:last |latest )?(?:message|prompt|request|conversation|chat|thread)"

_ADMISSIONS = _alternate(
    rf"(?:i ?)?{_ADVERB}{_UNABLE} {_VERBS} {_IMAGES}(?: or (?:locate|identify|recognize|describe|extract) .{{1,60}})?",
    rf"i {_NO} {_ADVERB}have (?:any )?"
    r"(?:vision|visual|image(?:[- ](?:viewing|processing|reading|input|recognition|analysis))?)"
    rf" (?:capabilit(?:y|ies)|abilit(?:y|ies)|support){_HERE}",
    rf"i have no (?:vision|visual|image)(?: (?:capabilit(?:y|ies)|abilit(?:y|ies)|support|input))?{_HERE}"
    rf"(?: to {_VERB} {_IMAGES})?",
    rf"i {_NO} {_ADVERB}have (?:any )?(?:vision|eyesight)",
    r"i lack (?:any )?(?:vision|visual|image) (?:capabilit(?:y|ies)|abilit(?:y|ies)|support)",
    rf"(?:i ?)(?:am|'m) not capable of {_VIEWING} {_IMAGES}",
    rf"(?:image|picture|screenshot) {_VIEWING} is(?: not|n't) (?:available|possible|supported)(?: to| for) me",
    rf"i {_NO} {_ADVERB}have access to {_IMAGES}",
    rf"i (?:only|just) have access to (?:the |your )?text(?: of your message)?,? (?:and )?not (?:to )?{_IMAGES}",
    r"i(?:'m| am) (?:just |only )?a text-(?:only|based)(?: ai| language)* (?:model|assistant|ai)",
    rf"i(?:'m| am) (?:just|only) a (?:text|(?:large )?language) model and {_NOT} {_VERBS} {_IMAGES}",
    rf"i ?{_ADVERB}{_UNABLE} {_VERBS} what you(?:'ve| have)? (?:just )?(?:sent|attached|pasted|shared|uploaded)",
    r"my (?:vision|visual|image)(?: (?:capabilit(?:y|ies)|support|input))? (?:is|are)"
    r" (?:disabled|unavailable|turned off)",
    r"i (?:don't|do not) have eyes",
    rf"(?:i (?:can )?(?:see|notice) (?:that )?)?you(?:'ve| have)? (?:just )?(?:{_GIVEN}|pasted|referenced) {_IMAGES},?"
    rf" but (?:unfortunately,? )?i ?{_ADVERB}{_UNABLE} {_VERBS} (?:it|them|{_IMAGES})",
    rf"(?:(?:the|your|this) )?(?:{_PICTURE}) (?:(?:is|are)(?:n't| not)|not) (?:visible|viewable|accessible) to me",
    r"i(?:'m| am)? (?:can )?only (?:able to )?(?:process|read|accept|work with|handle|understand|see|support|receive)"
    r" (?:plain )?text(?: inputs?| messages)?(?: and not images)?(?: (?:for now|here|right now))?",
    rf"{_MODEL} (?:{_NO} (?:support|accept|take|process|handle)|{_NOT} (?:{_VERB}|accept|take)) {_VISION}{_HERE}",
    rf"{_MODEL} (?:has no|{_NO} have) (?:vision|image)(?: (?:capabilit(?:y|ies)|support|input))?",
    rf"(?:(?:(?:the|your|this|these) )?(?:{_PICTURE}) {_NOT} be (?:seen|viewed|read|processed|analy[sz]ed|interpreted)"
    rf",? (?:because|as|since) )?{_MODEL} (?:can )?only (?:supports?|accepts?|takes?|handles?|process(?:es)?|reads?)"
    r" text(?: inputs?)?",
    rf"{_VISION} (?:is|are)(?: not|n't) supported (?:by|on|with|for|in) {_MODEL}",
    rf"i (?:{_NO}|{_NOT}) {_ADVERB}(?:see|find) (?:any |an |the |your )?(?:{_PICTURE})"
    rf" (?:{_GIVEN}(?: {_PLACE})?|{_PLACE})",
    rf"there(?:'s| is| are|'re) no (?:{_PICTURE}) (?:{_GIVEN}(?: {_PLACE})?|{_PLACE})",
    rf"no (?:{_PICTURE}) (?:was|were|is|are|has been) (?:actually )?(?:{_SHARED}(?: {_PLACE})?|{_GIVEN} {_PLACE})",
    rf"no (?:{_PICTURE}) came through",
    rf"(?:the|your) (?:{_PICTURE})"
    r" (?:(?:didn't|did not|doesn't seem to have|does not seem to have|hasn't|has not) come through"
    rf"|(?:was|were)(?: not|n't) (?:{_SHARED}(?: {_PLACE})?|{_GIVEN} {_PLACE}))",
    r"我?(?:暂时|目前|现在)?(?:无法|不能|没办法)(?:直接)?(?:查看|看到|看见|识别|读取|处理|分析|访问)(?:[您你](?:发送|上传|提供|发)的)?"
    r"(?:这张|任何)?(?:图片|图像|截图|照片)(?:内容)?",
    r"我?(?:这边)?(?:暂时|目前|现在)?看不(?:到|了|见)(?:[您你](?:发送|上传|提供|发)的)?(?:这张|任何)?(?:图片|图像|截图|照片|图)(?:内容)?",
    r"我?没有(?:视觉|识图|看图)(?:能力|功能)?",
    r"(?:当前|目前的|该|此|这个|我使用的)模型不支持(?:图片|图像|视觉|多模态)(?:输入|识别|功能)?",
    r"ich kann (?:leider )?(?:keine?|die|das|den|deine?n?|ihre?n?) ?(?:angehängten? )?"
    r"(?:bild(?:er)?|screenshots?|fotos?)"
    r"(?: leider| nicht| direkt)* (?:an)?(?:sehen|zeigen|lesen|öffnen|betrachten|analysieren|verarbeiten)",
    r"ich sehe (?:leider )?keine? (?:bild(?:er)?|screenshots?|fotos?)"
    r" in (?:deiner|ihrer|der|dieser) (?:nachricht|anfrage)",
    r"es wurde(?:n)? keine? (?:bild(?:er)?|screenshots?|fotos?) (?:angehängt|mitgeschickt|hochgeladen|übermittelt)",
    r"no (?:puedo|soy capaz de) (?:ver|visualizar|leer|procesar|analizar|abrir)"
    r" (?:las? |el |esta |tu )?(?:im[aá]gen(?:es)?|capturas?(?: de pantalla)?|fotos?)",
    r"je ne (?:peux|suis) pas (?:capable de |en mesure de )?(?:voir|visualiser|lire|traiter|analyser|ouvrir)"
    r" (?:les |l'|cette |votre |d'|des |la )?(?:images?|captures?(?: d'écran)?|photos?)",
    r"não (?:consigo|posso|sou capaz de) (?:ver|visualizar|ler|processar|analisar|abrir)"
    r" (?:as? |essa |esta |sua )?(?:imagens?|imagem|capturas?(?: de tela)?|fotos?)(?: enviadas?)?",
    r"я не (?:могу|умею) (?:видеть|просматривать|посмотреть|читать|обрабатывать|анализировать|открывать)"
    r" (?:это |ваше )?(?:изображени[яей]|картинк[иу]|скриншот[ыа]?|фото)",
    r"(?:私は|(?:この|現在の)モデルは)?(?:画像|スクリーンショット|写真)(?:の内容)?"
    r"(?:を(?:(?:見る|表示する|確認する|読み取る|処理する|認識する)ことが|表示|確認|認識|処理)(?:でき(?:ません|ない))|が見え(?:ません|ない))",
    r"(?:저는 )?(?:이미지|사진|스크린샷)(?:를|을) (?:볼|인식할|처리할|확인할|읽을) 수 없(?:습니다|어요)",
)

_APOLOGIES = (
    r"(?:i'm |i am )?(?:very |so )?sorry(?: about that)?|unfortunately|i apologi[sz]e|apologies|i'm afraid"
    r"|thanks|thank you|leider|(?:es )?tut mir leid|entschuldigung|lo siento|lamentablemente"
    r"|désolé|je suis désolé|malheureusement"
    r"|desculpe|sinto muito|infelizmente|к сожалению|извините|простите|пожалуйста"
    r"|(?:很|非常)?抱歉|对不起|申し訳(?:ありません|ございません)が?|すみませんが?"
)
# These may be about an image of a program, too. They count only beside a request to send the image.
_HINTS = _alternate(
    rf"no (?:{_PICTURE}) (?:was|were|is|are|has been) (?:actually )?{_GIVEN}",
    rf"(?:the|your) (?:{_PICTURE}) (?:was|were)(?: not|n't) {_GIVEN}",
)
_SEND = r"(?:re-?)?(?:attach|upload|send|share|provide|paste|post|submit|include)(?:ing)?"
_ASK = (
    rf"(?:{_SEND}|describ(?:e|ing)|tell|typ(?:e|ing)|copy|transcrib(?:e|ing)|summari[sz](?:e|ing)|explain|write|say|give"
    r"|switch|let me know|use (?:a|an|another|a different) [a-z -]*model)\b.*"
)
_POLITE = r"(?:please|kindly|also|just|then|still|always|instead|perhaps|maybe|try|(?:want|like|be able) to|to|again)"
_REQUESTS = (
    r"(?:please|kindly|try|feel free to|(?:could|can|would|will) you|you ?(?:can|could|may|might|should|'ll need to))"
    rf" (?:{_POLITE} )*(?:{_ASK}|again)"
    rf"|(?:if|once|when) you(?:'d| would|'re| are)? ?(?:can |could |have |want |like |able |to )*{_ASK}"
    rf"|(?:if|once|when) the (?:{_PICTURE}) .+"
    r"|(?:then )?i(?:'ll| will|'d| would|'m| am| can) (?:then )?(?:be )?(?:happy to |glad to |able to )?help.*"
    r"|(?:so )?(?:i )?(?:can't|cannot|can not) (?:tell|describe|say|know|comment|help|diagnose) ?.*"
    rf"|i (?:can't|cannot) {_VERB} (?:it|them)|only text was (?:provided|sent|received)"
    r"|(?:only (?:to )?(?:the )?text|text only|not (?:the |an |any )?(?:images?|pictures?|pixels))"
    r"(?: of your message| for now| here)?|without (?:the|that|an) (?:actual )?(?:image|screenshot|picture).{0,20}"
    r"|switch to .+|describe .+|let me know .+|what does it (?:show|say)|is there (?:any|some)thing else .+"
    r"|bitte .+|kannst du .+|können sie .+|por favor.*|podrías .+|puedes .+|pouvez-vous .+|peux-tu .+|veuillez .+"
    r"|poderia .+|pode .+|опишите.*|что на н.м.*|не могли бы .+|请.+|[您你](?:可以|能).+|如果.+"
    r"|.+(?:ください|いただけますか)"
)
_admission = re.compile(_ADMISSIONS)
_hint = re.compile(_HINTS)
_companion = re.compile(f"(?:{_APOLOGIES}|{_REQUESTS})")
_asks_for_image = re.compile(rf"\b{_SEND}\b").search
_opening = re.compile(
    rf"^(?:(?:{_APOLOGIES}|as an? [a-z -]*(?:model|ai|assistant)(?: without [a-z ]+)?"
    r"|it (?:looks|seems)(?: like| that)?|it appears(?: that)?|but|so|and|because|since|that"
    r"|no momento|at the moment|right now)[,\s]+)+"
)
_sentence = re.compile(r"(?<=[.!?])\s+|[。！？]|\n+")
_clause = re.compile(
    r"\s*(?:[,;，；、]|\s[—–-]\s|—)\s*|\s(?=(?:but|so|because|since)\s)|\sand\s(?=i\b|can't|cannot|don't|do not|am\b)"
)


def admits_blindness(reply: str) -> bool:
    """Return whether all that a reply says is that its model can't see images."""
    if not reply or len(reply) > MAX_REPLY_LENGTH:
        return False
    text = re.sub(r"[*_]{1,3}", "", reply.replace("’", "'")).strip().lower()
    clauses = [clause for sentence in _sentence.split(text) for clause in _split_clauses(sentence)]
    admits = any(map(_admission.fullmatch, clauses))
    hints = any(map(_hint.fullmatch, clauses)) and _asks_for_image(text) is not None
    return (admits or hints) and all(map(_is_known, clauses))


def _is_known(clause: str) -> bool:
    """Return whether a clause is an admission, or something that usually goes with one."""
    return any(pattern.fullmatch(clause) for pattern in (_admission, _hint, _companion))


def _split_clauses(sentence: str) -> list[str]:
    """Return the clauses of a sentence, without the words that only lead to them; a known sentence is not split."""
    bare = _drop_opening(sentence.strip().strip("¿¡").rstrip(".!?… "))
    if _is_known(bare):
        return [bare]
    return [part for each in _clause.split(bare) if (part := _drop_opening(each))]


def _drop_opening(clause: str) -> str:
    return _opening.sub("", f"{clause.strip()} ").strip()
