#!/usr/bin/env python3
"""Ten minutes of endless capture and replay, and the resident memory in them as a plot.

    recapture.py FOLDER [SECONDS]    runs the example recapture of lineage-cudarc; writes FOLDER/recapture.jsonl and FOLDER/recapture.svg
"""

import json
import pathlib
import subprocess
import sys

COMMAND = ["cargo", "run", "--release", "--locked", "--quiet", "-p", "lineage-cudarc", "--example", "recapture", "--"]
WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 960, 320, 90, 20, 48, 48


def plot(samples):
    """Resident memory from 0, over time."""
    seconds = max(sample["seconds"] for sample in samples)
    most = max(sample["resident_kib"] for sample in samples) / 1024
    step = next(step for step in (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000) if most / step <= 6)
    top = step * (int(most / step) + 1)

    def x(at):
        return LEFT + (WIDTH - LEFT - RIGHT) * at / seconds

    def y(mebibytes):
        return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * mebibytes / top

    last = samples[-1]
    title = f"{last['captures']:,} graphs captured, replayed {last['replays']:,} times and thrown away: resident memory"
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}" role="img"',
        "     aria-labelledby=\"title\" font-family=\"system-ui, -apple-system, 'Segoe UI', Helvetica, Arial, sans-serif\" font-size=\"13\">",
        f'  <title id="title">{title}</title>',
        f'  <rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>',
        f'  <text x="{LEFT}" y="26" font-size="15">{title}</text>',
    ]
    for mark in range(0, top + 1, step):
        lines.append(f'  <line x1="{LEFT}" y1="{y(mark):.1f}" x2="{WIDTH - RIGHT}" y2="{y(mark):.1f}" stroke="#dddddd"/>')
        lines.append(f'  <text x="{LEFT - 10}" y="{y(mark) + 4:.1f}" text-anchor="end">{mark} MiB</text>')
    for part in range(6):
        at = seconds * part / 5
        lines.append(f'  <text x="{x(at):.1f}" y="{HEIGHT - 18}" text-anchor="middle">{at:.0f} s</text>')
    points = " ".join(f"{x(sample['seconds']):.1f},{y(sample['resident_kib'] / 1024):.1f}" for sample in samples)
    lines.append(f'  <polyline points="{points}" fill="none" stroke="#1f6feb" stroke-width="2"/>')
    lines.append("</svg>")
    return "\n".join(lines) + "\n"


def main():
    folder = pathlib.Path(sys.argv[1])
    seconds = int(sys.argv[2]) if len(sys.argv) > 2 else 600
    folder.mkdir(parents=True, exist_ok=True)
    done = subprocess.run([*COMMAND, str(seconds)], stdout=subprocess.PIPE, text=True, timeout=seconds + 240)
    (folder / "recapture.jsonl").write_text(done.stdout)
    samples = [json.loads(line) for line in done.stdout.splitlines()]
    if len(samples) < seconds / 2:
        sys.exit(f"recapture.py: {len(samples)} samples in {seconds} s")
    (folder / "recapture.svg").write_text(plot(samples))
    sys.exit(done.returncode)


main()
