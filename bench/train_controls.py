"""Train the models of controls and of states, and write their weights: controls.npz and states.npz in
src/sightline/reader.

    .venv/bin/python bench/train_controls.py [--toggles] [FOLDS]

It makes pictures of pages around the packages in training_packages.json (training_kits.py, training_more_kits.py,
training_pages.py), of pages with random looks (training_variety.py) and of narrow forms and documents
(training_dense.py), draws sketches (training_sketches.py) and sheets of shapes (training_shapes.py), measures them and
the parts of the corpus of real pictures that are for development (training_rows.py), and fits small models to the rows
in an environment with scikit-learn and jax (fit_controls.py, fit_toggles.py). What is selected or disabled is trained
on pages of menus, tabs, lists and tables too, with random looks and in the markup of style packages
(training_states.py, training_state_kits.py, training_state_rows.py, fit_states.py). Nothing is read of the part that is
set aside, nor of the packages that only score_kits.py shows. All that is random comes from fixed seeds. It takes about
an hour of CPU time; pictures, the lines that were read and rows are kept in the cache, below training-controls, and not
made again: remove the rows there after a change of the measures. With a folder FOLDS, fit_controls.py also writes there
weights that saw nothing of some packages. With --toggles only the network of check boxes, radio buttons and switches is
fitted; all other weights stay as they are.
"""

import os
import subprocess
import sys
from pathlib import Path

import peer_environments
import real_corpus
import training_pictures
import training_rows
import training_state_rows

from sightline.model.refusal import Refusal
from sightline.reader.ocr.weights import open_engine

PAGES = 7  # of each package
SKETCHES = 2400
HERE = Path(__file__).resolve().parent
READER = HERE.parent / "src" / "sightline" / "reader"


def train(*folds: str, only_toggles: bool) -> None:
    engine = open_engine(None)
    if isinstance(engine, Refusal):
        raise SystemExit(f"bench: {engine.what}")
    folder = peer_environments.find_cache() / "training-controls"
    training_pictures.make_pictures(folder / "pictures", PAGES)
    folders = [*(real_corpus.find_part(part) for part in real_corpus.PARTS[:-1]), folder / "pictures"]
    pictures = [picture for each in folders for picture in sorted(each.glob("*.png"))]
    rows = folder / ("toggle-rows" if only_toggles else "rows")
    training_rows.write_rows(pictures, rows, engine, only_toggles=only_toggles)
    training_rows.write_sketch_rows(SKETCHES, rows, only_toggles=only_toggles)
    python = peer_environments.install_training() / "bin" / "python"
    alone = {**os.environ, "OMP_NUM_THREADS": "1"}  # on a busy machine, threads mostly wait for each other
    chosen = ["--toggles"] if only_toggles else []
    fit_controls = [HERE / "fit_controls.py", *chosen, rows, READER / "controls.npz", *folds]
    subprocess.run([python, *fit_controls], check=True, env=alone)
    if only_toggles:
        return
    training_pictures.make_state_pictures(folder / "state-pictures")
    pictures += sorted((folder / "state-pictures").glob("*.png"))
    training_state_rows.write_state_rows(pictures, folder / "state-rows", folder / "lines", engine)
    fit_states = [HERE / "fit_states.py", folder / "state-rows", READER / "states.npz"]
    subprocess.run([python, *fit_states], check=True, env=alone)


if __name__ == "__main__":
    train(*(each for each in sys.argv[1:] if each != "--toggles"), only_toggles="--toggles" in sys.argv)
