import React from 'react';
import { renderToStaticMarkup } from 'react-dom/server';
import { expect, test } from 'vitest';
import type { IJobView } from '../../src/api/types';
import { Card } from '../../src/card/card';
import { fold } from '../../src/card/details/failure';
import { CardModel } from '../../src/card/model';
import { readSnapshot } from '../../src/card/snapshot';
import { CommandIDs } from '../../src/tokens';
import { FakeSubmarine, JOB, record, task, trans, view } from './fakes';

const EVIL = '<img src=x onerror=alert(1)>';
const context = { trans, has: (command: string) => command !== '', run: () => Promise.resolve() };

/** The card's DOM, as parsed from what is rendered. */
function shown(model: CardModel, trusted = true, has = context.has): Document {
  const words = renderToStaticMarkup(
    <Card model={model} context={{ ...context, has }} trusted={trusted} />
  );
  return new DOMParser().parseFromString(words, 'text/html');
}

function live(said: IJobView): CardModel {
  const fake = new FakeSubmarine();
  const model = new CardModel(fake, trans, JOB, null);
  model.setVisible(true);
  fake.say(said);
  return model;
}

function buttons(page: Document): (string | null)[] {
  return [...page.querySelectorAll('.jp-Submarine-actions button')].map(one => one.textContent);
}

test('a running job of mine can be saved and cancelled, an ended one run again', () => {
  expect(buttons(shown(live(view())))).toEqual(['Logs', 'Save model', 'Cancel', 'Copy as command']);
  const ended = view({ state: 'SUCCEEDED' }, { has_tensorboard: true });
  expect(buttons(shown(live(ended)))).toEqual(['Logs', 'TensorBoard', 'Rerun', 'Copy as command']);
});

test("another user's job can only be looked at", () => {
  expect(buttons(shown(live(view({}, { mine: false }))))).toEqual(['Logs', 'Copy as command']);
});

test('what the application cannot do is not offered', () => {
  const page = shown(live(view()), true, command => command === CommandIDs.cancel);
  expect(buttons(page)).toEqual(['Cancel']);
});

test("somebody else's notebook: text only, no action, no link", () => {
  const snapshot = readSnapshot({
    job_id: JOB,
    name: EVIL,
    mine: true,
    command: EVIL,
    record: {
      ...record(),
      detail: EVIL,
      links: { YARN: 'https://evil.example/', [EVIL]: 'javascript:alert(1)' },
      failure: { type: EVIL, message: EVIL, frames: [{ file: EVIL, line: 1, code: EVIL }] },
      tasks: [
        { ...task(0), host: EVIL, log_url: 'javascript:alert(1)', state: 'FAILED' },
        { ...task(1), log_url: 'https://evil.example/', container_id: 'container_1_2_3' }
      ],
      hints: [EVIL],
      phases: [{ name: EVIL, start: 1, end: 2 }]
    }
  });
  const page = shown(new CardModel(null, trans, JOB, snapshot), false);
  expect(page.querySelectorAll('img, script, a, iframe')).toHaveLength(0);
  expect(page.querySelector('.jp-Submarine-actions')).toBeNull();
  expect(page.querySelector('.jp-Submarine-name')?.textContent).toBe(EVIL);
  expect(page.body.textContent).toContain('not the current state');
});

test('links go to the web only, and take nothing with them', () => {
  const links = { YARN: 'https://rm.example/app', evil: 'javascript:alert(1)' };
  const tasks = [task(0, { log_url: 'data:text/html,x' }), task(1, { log_url: 'http://nm/log' })];
  const page = shown(live(view({ links, tasks }, { task_count: 2 })));
  const found = [...page.querySelectorAll('a')];
  expect(new Set(found.map(one => one.getAttribute('href')))).toEqual(
    new Set(['https://rm.example/app', 'http://nm/log'])
  );
  for (const link of found) {
    expect(link.getAttribute('rel')).toBe('noopener noreferrer');
    expect(link.getAttribute('target')).toBe('_blank');
  }
});

test('the traceback leads to cells, the pending reason and hints are told', () => {
  const frames = [
    { file: 'm.py', line: 9, function: 'f', code: 'x', cell: '[3]', cell_id: 'c3', cell_line: 4 },
    {
      file: '/lib/a.py',
      line: 7,
      function: '',
      code: '',
      cell: null,
      cell_id: null,
      cell_line: null
    }
  ];
  const failed = view(
    { state: 'FAILED', failure: { type: 'E', message: 'm', frames, text: '' }, hints: ['less'] },
    { status: 'An error of its own.', advice: 'Mend it.' }
  );
  const page = shown(live(failed));
  const links = [...page.querySelectorAll('.jp-Submarine-failure button')];
  expect(links.map(one => one.textContent)).toEqual(['Cell [3], line 4']);
  for (const words of ['An error of its own.', 'Mend it.', 'less', '/lib/a.py, line 7']) {
    expect(page.body.textContent).toContain(words);
  }
  const waits = shown(live(view({ state: 'PENDING' }, { status: 'Queue gpu is full.' })));
  expect(waits.body.textContent).toContain('Queue gpu is full.');
});

test('of 200 tasks one page is in the document, and what is left out is stated', () => {
  const tasks = Array.from({ length: 200 }, (_, n) => task(n));
  const page = shown(live(view({ tasks }, { task_count: 1000 })));
  expect(page.querySelectorAll('.jp-Submarine-tasks tbody tr')).toHaveLength(50);
  expect(page.body.textContent).toContain('200 of 1000 tasks');
  expect(page.body.textContent).toContain('1 to 50 of 200');
});

test('a deep recursion is folded', () => {
  const frame = { file: 'a', line: 1, function: '', code: '', cell: null, cell_id: null };
  const frames = Array.from({ length: 1000 }, (_, line) => ({ ...frame, line, cell_line: null }));
  const { first, left, last } = fold(frames);
  expect([first.length, left, last.length, last.at(-1)?.line]).toEqual([10, 980, 10, 999]);
});

test('a job says which workflow, run and node started it, and only then', () => {
  const names = { workflow: EVIL, workflow_run: 'nightly-1f0a', workflow_node: 'train' };
  const page = shown(live(view(names)));
  const line = page.querySelector('.jp-Submarine-origin');
  expect(line?.textContent).toBe(`${EVIL} · run nightly-1f0a · train`);
  expect(page.querySelector('img')).toBeNull();
  expect(shown(live(view())).querySelector('.jp-Submarine-origin')).toBeNull();
});
