"""Draw the pictures of README.md and of the tutorials again: ``python docs/make_pictures.py [NAME ...]``.

Scenario files are those of the pages. All pictures take about ten minutes.
"""

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

DOCS = Path(__file__).resolve().parent
DRAW = "simkit render out --format png --output picture.png"
SOFTEST = "--wrt launch_speed,launch_angle,time_step --objective '100*gap + first(speed)**2/100'"
# What a shell does in an empty folder that holds the scenario files of the pages.
COMMANDS = {
    "couette": f"simkit run couette.toml --no-render -o out && {DRAW}",
    "convection": f"simkit run rayleigh_benard_onset --no-render -o out && {DRAW}",
    "argon": f"simkit run lennard_jones_crystal --no-render -o out && {DRAW} --frame 0",
    "spin": f"simkit run bouncing_ball --set spin=-80 --set friction=0.1 --set steps=1200 --no-render -o out && {DRAW}",
    "softest": f"simkit optimize softest.toml {SOFTEST} -o out && mv out/before_after.png picture.png",
    "drag_reduction": "simkit optimize drag_reduction --wrt slenderness,angle --iterations 12 -o out"
    " && mv out/before_after.png picture.png",
    "arm": f"{sys.executable} robotics.py && mv arm.png picture.png",
}


def draw(name: str, folder: Path) -> None:
    """Draw one picture in a folder."""
    for page in (DOCS / "start.md", *DOCS.glob("tutorials/*.md")):
        for file, text in re.findall(r"^```toml\n# (\S+)\n(.*?)^```", page.read_text(), re.DOTALL | re.MULTILINE):
            (folder / file).write_text(text)
    code = re.findall(r"^```python\n(.*?)^```", (DOCS / "tutorials/robotics.md").read_text(), re.DOTALL | re.MULTILINE)
    (folder / "robotics.py").write_text("\n".join(code).partition('.save("arm.png")')[0] + '.save("arm.png")\n')
    subprocess.run(COMMANDS[name], shell=True, check=True, cwd=folder)


def main(names: list[str]) -> None:
    """Draw the named pictures, or all."""
    for name in names or COMMANDS:
        with tempfile.TemporaryDirectory() as folder:
            draw(name, Path(folder))
            os.replace(Path(folder) / "picture.png", DOCS / "pictures" / f"{name}.png")


if __name__ == "__main__":
    main(sys.argv[1:])
