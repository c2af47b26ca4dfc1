"""The command line that the package brings."""

import importlib.metadata
import subprocess
import sys
from pathlib import Path

import numpy as np

import tilework as tw
from stopping import needs_proc, stop


def tilework(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "tilework", *words], capture_output=True, text=True, check=False
    )


def test_the_script_is_the_module() -> None:
    (script,) = importlib.metadata.entry_points(group="console_scripts", name="tilework")
    assert script.value == "tilework.__main__:main"
    assert tilework("--version").stdout == f"tilework {tw.__version__}\n"


def test_info_names_every_device() -> None:
    said = tilework("info")
    assert said.returncode == 0
    assert all(f"\n{device}" in said.stdout for device in tw.devices())


def test_files_are_reduced(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    x, y, b = rng.normal(size=(7, 3)), rng.normal(size=(11, 3)), rng.normal(size=11)
    for name, array in (("x", x), ("y", y), ("b", b)):
        np.save(tmp_path / f"{name}.npy", array)
    files = [f"{name}={tmp_path / name}.npy" for name in ("x", "y", "b")]
    to = tmp_path / "a.npy"
    line = ["reduce", "Exp(-SqDist(x,y)/s)*b", "--vi", files[0], "--vj", *files[1:], "--pm", "s=0.5"]
    said = tilework(*line, "--sum", "j", "-o", str(to))
    assert (said.returncode, said.stdout, said.stderr) == (0, "", "")
    squares = ((x[:, None] - y[None]) ** 2).sum(-1)
    np.testing.assert_allclose(np.load(to)[:, 0], np.exp(-squares / 0.5) @ b, rtol=1e-12)
    explained = tilework(*line, "--sum", "j", "--explain")
    assert explained.returncode == 0 and "per pair" in explained.stdout


def test_wrong_lines_say_what_is_wrong(tmp_path: Path) -> None:
    for words, code, says in [
        (["reduce", "x", "--vi", "x=nowhere.npy", "--sum", "j", "-o", "a.npy"], 1, "nowhere.npy"),
        (["abacus"], 2, "abacus"),
        ([], 2, "Usage"),
    ]:
        said = tilework(*words)
        assert said.returncode == code and says in said.stderr, words


# A child of its own, since the line takes the signal over and ends its process.
LINE = """
import os
import numpy as np
import tilework._core as core
folder = sys.argv[1]
np.save(folder + "/x.npy", np.ones((1 << 20, 3), np.float32))
words = ["tilework", "reduce", "Exp(-SqDist(x,y))", "--vi", f"x={folder}/x.npy", "--vj", f"y={folder}/x.npy"]
print("begins", flush=True)
code = core._command_line([*words, "--sum", "j", "-o", folder + "/a.npy"])
print("stopped", time.process_time(), flush=True)
print(code, sorted(os.listdir(folder)))
"""


@needs_proc
def test_ctrl_c_stops_a_line_and_leaves_no_file(tmp_path: Path) -> None:
    took, said = stop(LINE, str(tmp_path))
    assert took < 5 and said == ["130 ['x.npy']"]
