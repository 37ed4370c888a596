# SPDX-License-Identifier: Apache-2.0
"""--boot-timer: every stage, in order, and the counters, without a change to the guest."""
import json

import husk

STAGES = ["config", "plan", "memory", "init_end", "start_kernel", "start_user", "end"]
GUEST = """
    putc 'u'
    putc 'p'
    putc '!'
    putc '\\n'
    end
"""


@husk.needs_accelerator
def test_json_has_every_stage_in_order(tmp_path):
    image = husk.firmware(tmp_path, GUEST)
    result = husk.run("run", "--firmware", image, "--boot-timer=json", "--boot-mark", "^u.!$")
    assert result.returncode == 0
    document = json.loads(result.stderr)
    assert document["schema"] == 1
    times = document["stages_ms"]
    assert list(times) == STAGES
    in_order = [times[stage] for stage in STAGES if stage != "start_user"]
    assert in_order == sorted(in_order)
    assert times["start_user"] >= times["start_kernel"] > 0


@husk.needs_accelerator
def test_json_has_the_counters(tmp_path):
    image = husk.firmware(tmp_path, GUEST)
    result = husk.run("run", "--firmware", image, "--boot-timer=json")
    counters = json.loads(result.stderr)["counters"]
    assert counters["port_exits"] == len("up!\n") + 1  # and the power-off
    for none in ("mmio_exits", "fw_cfg_port_bytes", "fw_cfg_dma_bytes"):
        assert counters[none] == 0


@husk.needs_accelerator
def test_stage_not_reached_is_null_and_a_dash(tmp_path):
    image = husk.firmware(tmp_path, GUEST)
    result = husk.run("run", "--firmware", image, "--boot-timer=json", "--boot-mark", "never")
    assert json.loads(result.stderr)["stages_ms"]["start_user"] is None
    result = husk.run("run", "--firmware", image, "--boot-timer")
    row = next(line for line in result.stderr.splitlines() if line.startswith("start_user"))
    assert row.split()[1:3] == ["-", "-"]
