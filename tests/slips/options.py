"""Slips in options and project files."""

from slips.commands import BOXES, PLAIN, PROJECTED, TRAIN, Slip
from slips.files import PROJECT, boxes, folder, text

OPTIONS = [
    Slip("boxes and labels", f"{TRAIN} --labels mask.png", ("'--boxes' / '--labels': give exactly one",), remedy=TRAIN),
    Slip("neither boxes nor labels", PLAIN, ("'--boxes' / '--labels': give exactly one",), remedy=TRAIN),
    Slip("unknown objective", f"{TRAIN} --objective bipolr", ("[choice]", "'bipolr'")),
    Slip("unknown solver", f"{TRAIN} --solver evolution", ("[solver-unknown]",)),
    Slip("no superpixels", TRAIN.replace("40", "0"), ("'--superpixels'", "greater than or equal to 1"), remedy=TRAIN),
    Slip(
        "more superpixels than pixels",
        TRAIN.replace("40", "99999"),
        ("[superpixels-many]", "--superpixels", "99,999", "2,400 pixels"),
        remedy=TRAIN,
    ),
    Slip(
        "overlap in percent",
        f"{TRAIN} --min-overlap 50",
        ("'--min-overlap'", "less than or equal to 1"),
        remedy=f"{TRAIN} --min-overlap 0.5",
    ),
    Slip(
        "overlap that no bag has",
        f"{TRAIN} --min-overlap 1",
        ("[one-class]", "`bimichi bags`"),
        boxes("13,9,3,3"),
        TRAIN,
    ),
    Slip("negative seed", f"{TRAIN} --seed -1", ("'--seed'", "greater than or equal to 0")),
    Slip("no jobs", f"{TRAIN} --jobs 0", ("'--jobs'", "greater than or equal to 1")),
    Slip("misspelled option", f"{TRAIN} --objektive mean", ("No such option: --objektive", "--objective")),
    Slip("output forgotten", f"train thermal.png grey.png {BOXES}", ("Missing option '--output' / '-o'",)),
    Slip(
        "unknown key in a project",
        PROJECTED,
        ("[project-key]", "'superpixel'", "bimichi.toml", "'superpixels'"),
        text("bimichi.toml", f"{PROJECT}superpixel = 40\n"),
        PROJECTED,
        text("bimichi.toml", PROJECT),
    ),
    Slip(
        "wrong type in a project",
        "train --project . -o m.json",
        ("'--superpixels'", "valid integer", "(a value of the project file)"),
        text("bimichi.toml", f"{PROJECT}superpixels = 'many'\n"),
    ),
    Slip(
        "missing file of a project",
        PROJECTED,
        ("[file-missing]", "gray.png", "grey.png"),
        text("bimichi.toml", PROJECT.replace("grey.png", "gray.png")),
        PROJECTED,
        text("bimichi.toml", PROJECT),
    ),
    Slip(
        "project outside its folder",
        PROJECTED,
        ("[file-missing]", "thermal.png"),
        text("bimichi.toml", PROJECT.replace("thermal", "../elsewhere/thermal")),
    ),
    Slip(
        "project that is no TOML",
        PROJECTED,
        ("[project-toml]", "bimichi.toml"),
        text("bimichi.toml", PROJECT.replace("]]", "]")),
    ),
    Slip(
        "project that writes",
        "train --project .",
        ("[project-option]", "bimichi.toml"),
        text("bimichi.toml", f"{PROJECT}[train]\noutput = 'm.json'\n"),
    ),
    Slip(
        "no project file",
        "train --project other -o m.json",
        ("other/bimichi.toml", "[project-unreadable]", "`bimichi init`"),
    ),
    Slip(
        "second init",
        "init .",
        ("[project-exists]", "--force"),
        text("bimichi.toml", PROJECT),
        "init . --force",
    ),
    Slip("init of an empty folder", "init empty", ("[images-missing]",), folder("empty")),
]
