"""Pictures of fingers that never were: waves, bent by vortices. Where a vortex is, a ridge ends or forks, which is what a matcher
looks for. Source of the model: Larkin and Fletcher, A coherent framework for fingerprint analysis, 2007."""

import functools
import math
import random

WIDTH, HEIGHT = 256, 256
PERIOD = 9.0  # pixels from ridge to ridge at 500 dpi
MINUTIAE = 36


@functools.cache
def picture(finger: int) -> bytes:
    """One byte a pixel, row by row; the same for the same finger."""
    chance = random.Random(finger)
    turn = chance.uniform(-0.3, 0.3)
    centre = (WIDTH / 2 + chance.uniform(-20, 20), HEIGHT + 60)
    vortices: list[tuple[float, float, int]] = []
    while len(vortices) < MINUTIAE:
        x, y = chance.uniform(24, WIDTH - 24), chance.uniform(24, HEIGHT - 24)
        if all(math.hypot(x - a, y - b) > 26 for a, b, _ in vortices):
            vortices.append((x, y, chance.choice([-1, 1])))
    rows = bytearray()
    for y in range(HEIGHT):
        for x in range(WIDTH):
            phase = math.hypot(x - centre[0], (y - centre[1]) * (1 + turn)) * 2 * math.pi / PERIOD
            phase += sum(sign * math.atan2(y - b, x - a) for a, b, sign in vortices)
            rows.append(int(127.5 + 120 * math.cos(phase)))
    return bytes(rows)
