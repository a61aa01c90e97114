"""A workflow's cell in Lab: its graph while it runs, with no kernel too, its jobs in the panel."""

from __future__ import annotations

import sys

from playwright.sync_api import expect

from tests.browser.lab_page import LabPage
from tests.browser.test_looks import violations

CELL = f"""%%submarine workflow looks --schedule "0 30 2 ? * *" --timezone Europe/Berlin
nodes:
  - name: features
    type: command
    config: {{command: "sh -c 'while ! [ -e looks.go ]; do sleep 0.1; done'"}}
  - name: train
    type: command
    config:
      command: "{sys.executable} -m submarine_jobs.cli run looks.py --backend local --wait"
    dependsOn: [features]
  - name: publish
    type: command
    config: {{command: "sh -c 'exit 3'"}}
    dependsOn: [train]
    condition: all_done
"""


def test_a_workflow_is_seen_while_it_runs_and_its_job_stands_under_it(lab_page: LabPage) -> None:
    folder = lab_page.lab.notebooks
    (folder / "looks.py").write_text("print('fitted')\n")
    lab_page.open(lab_page.lab.write("looks.ipynb", CELL, "%submarine workflow run looks"))
    lab_page.run_all()
    drawn, running = lab_page.outputs(0), lab_page.outputs(1)
    expect(drawn.locator("svg text", has_text="features")).to_be_visible(timeout=60_000)
    expect(drawn).to_contain_text("Saved in looks.flow")
    expect(running.locator("svg")).to_contain_text("running", timeout=60_000)
    # From here on no kernel draws it: the server does, for this page and any other.
    lab_page.save()
    lab_page.shut_down_kernel()
    lab_page.reload()
    expect(running.locator("svg")).to_contain_text("running", timeout=60_000)
    (folder / "looks.go").touch()
    expect(running.get_by_text("FAILED", exact=True)).to_be_visible(timeout=120_000)
    expect(running.locator("svg")).to_contain_text("succeeded")
    expect(running).to_contain_text("Its command ended with code 3")
    expect(running.locator("svg")).to_contain_text("failed")
    expect(running.locator(".jp-Submarine-workflow-note")).to_have_count(0)
    lab_page.command("submarine:jobs")
    lab_page.page.get_by_label("Search jobs").fill("looks-2")  # what its runs are called
    panel = lab_page.page.get_by_role("listbox", name="Jobs")
    expect(panel.get_by_role("option")).to_have_count(1, timeout=60_000)
    expect(panel.get_by_role("option")).to_contain_text("train")
    expect(panel.locator(".jp-Submarine-jobs-run")).to_have_count(1)
    expect(panel.locator(".jp-Submarine-jobs-run")).to_contain_text("looks")
    for theme in ("Light", "Dark"):
        lab_page.theme(theme)
        expect(lab_page.page.locator("#jupyterlab-splash")).to_have_count(0, timeout=60_000)
        expect(running.locator("svg")).to_be_visible()
        assert contrast_of(lab_page) > 4.5
        lab_page.shot(f"workflow-{theme}")
    assert violations(lab_page) == []


def contrast_of(lab_page: LabPage) -> float:
    """The contrast of the graph's text with the page, as WCAG reckons it."""
    value: float = lab_page.page.evaluate(
        """() => {
          const text = document.querySelector('.jp-OutputArea-output svg text');
          const light = colour => {
            const [r, g, b] = colour.match(/[\\d.]+/g).slice(0, 3).map(one => {
              const part = one / 255;
              return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
            });
            return 0.2126 * r + 0.7152 * g + 0.0722 * b;
          };
          let page = text;
          while (/^rgba\\(.*, 0\\)$/.test(getComputedStyle(page).backgroundColor)) {
            page = page.parentElement;
          }
          const both = [
            light(getComputedStyle(text).fill),
            light(getComputedStyle(page).backgroundColor)
          ].sort((a, b) => b - a);
          return (both[0] + 0.05) / (both[1] + 0.05);
        }"""
    )
    return value
