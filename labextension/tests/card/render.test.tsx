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

const MARKUP = '<img src=x onerror=alert(1)>';
const context = { trans, has: (command: string) => command !== '', run: () => Promise.resolve() };

/** The rendered card as a DOM document. */
function renderCard(model: CardModel, trusted = true, has = context.has): Document {
  const html = renderToStaticMarkup(
    <Card model={model} context={{ ...context, has }} trusted={trusted} />
  );
  return new DOMParser().parseFromString(html, 'text/html');
}

function liveModel(jobView: IJobView): CardModel {
  const fake = new FakeSubmarine();
  const model = new CardModel(fake, trans, JOB, null);
  model.setVisible(true);
  fake.sendView(jobView);
  return model;
}

function buttons(page: Document): (string | null)[] {
  return [...page.querySelectorAll('.jp-Submarine-actions button')].map(one => one.textContent);
}

test('offers save and cancel for an active job of the user, and rerun for an ended one', () => {
  expect(buttons(renderCard(liveModel(view())))).toEqual([
    'Logs',
    'Save model',
    'Cancel',
    'Copy as command'
  ]);
  const ended = view({ state: 'SUCCEEDED' }, { has_tensorboard: true });
  expect(buttons(renderCard(liveModel(ended)))).toEqual([
    'Logs',
    'TensorBoard',
    'Rerun',
    'Copy as command'
  ]);
});

test('offers no changes to a job of another user', () => {
  expect(buttons(renderCard(liveModel(view({}, { mine: false }))))).toEqual([
    'Logs',
    'Copy as command'
  ]);
});

test('offers only actions whose command exists', () => {
  const page = renderCard(liveModel(view()), true, command => command === CommandIDs.cancel);
  expect(buttons(page)).toEqual(['Cancel']);
});

test('an untrusted snapshot is shown as text without actions and links', () => {
  const snapshot = readSnapshot({
    job_id: JOB,
    name: MARKUP,
    mine: true,
    command: MARKUP,
    record: {
      ...record(),
      detail: MARKUP,
      links: { YARN: 'https://evil.example/', [MARKUP]: 'javascript:alert(1)' },
      failure: { type: MARKUP, message: MARKUP, frames: [{ file: MARKUP, line: 1, code: MARKUP }] },
      tasks: [
        { ...task(0), host: MARKUP, log_url: 'javascript:alert(1)', state: 'FAILED' },
        { ...task(1), log_url: 'https://evil.example/', container_id: 'container_1_2_3' }
      ],
      hints: [MARKUP],
      phases: [{ name: MARKUP, start: 1, end: 2 }]
    }
  });
  const page = renderCard(new CardModel(null, trans, JOB, snapshot), false);
  expect(page.querySelectorAll('img, script, a, iframe')).toHaveLength(0);
  expect(page.querySelector('.jp-Submarine-actions')).toBeNull();
  expect(page.querySelector('.jp-Submarine-name')?.textContent).toBe(MARKUP);
  expect(page.body.textContent).toContain('not the current state');
});

test('links only to web addresses, without opener and referrer', () => {
  const links = { YARN: 'https://rm.example/app', evil: 'javascript:alert(1)' };
  const tasks = [task(0, { log_url: 'data:text/html,x' }), task(1, { log_url: 'http://nm/log' })];
  const page = renderCard(liveModel(view({ links, tasks }, { task_count: 2 })));
  const found = [...page.querySelectorAll('a')];
  expect(new Set(found.map(one => one.getAttribute('href')))).toEqual(
    new Set(['https://rm.example/app', 'http://nm/log'])
  );
  for (const link of found) {
    expect(link.getAttribute('rel')).toBe('noopener noreferrer');
    expect(link.getAttribute('target')).toBe('_blank');
  }
});

test('shows the traceback with links to cells, the reason for waiting and hints', () => {
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
  const page = renderCard(liveModel(failed));
  const links = [...page.querySelectorAll('.jp-Submarine-failure button')];
  expect(links.map(one => one.textContent)).toEqual(['Cell [3], line 4']);
  for (const words of ['An error of its own.', 'Mend it.', 'less', '/lib/a.py, line 7']) {
    expect(page.body.textContent).toContain(words);
  }
  const waiting = renderCard(
    liveModel(view({ state: 'PENDING' }, { status: 'Queue gpu is full.' }))
  );
  expect(waiting.body.textContent).toContain('Queue gpu is full.');
});

test('renders one page of 200 tasks and the number of omitted tasks', () => {
  const tasks = Array.from({ length: 200 }, (_, n) => task(n));
  const page = renderCard(liveModel(view({ tasks }, { task_count: 1000 })));
  expect(page.querySelectorAll('.jp-Submarine-tasks tbody tr')).toHaveLength(50);
  expect(page.body.textContent).toContain('200 of 1000 tasks');
  expect(page.body.textContent).toContain('1 to 50 of 200');
});

test('folds the traceback of a deep recursion', () => {
  const frame = { file: 'a', line: 1, function: '', code: '', cell: null, cell_id: null };
  const frames = Array.from({ length: 1000 }, (_, line) => ({ ...frame, line, cell_line: null }));
  const { first, left, last } = fold(frames);
  expect([first.length, left, last.length, last.at(-1)?.line]).toEqual([10, 980, 10, 999]);
});

test('shows the workflow, run and node that started a job, if any', () => {
  const names = { workflow: MARKUP, workflow_run: 'nightly-1f0a', workflow_node: 'train' };
  const page = renderCard(liveModel(view(names)));
  const line = page.querySelector('.jp-Submarine-origin');
  expect(line?.textContent).toBe(`${MARKUP} · run nightly-1f0a · train`);
  expect(page.querySelector('img')).toBeNull();
  expect(renderCard(liveModel(view())).querySelector('.jp-Submarine-origin')).toBeNull();
});

test('lists the outputs that were saved', () => {
  const saved_outputs = [
    { name: MARKUP, uri: 'hdfs:///data/predictions', files: 2, bytes: 2048 },
    { name: 'one', uri: 'hdfs:///data/one', files: 1, bytes: 0 }
  ];
  const page = renderCard(liveModel(view({ saved_outputs })));
  const facts = page.querySelector('.jp-Submarine-more .jp-Submarine-facts');
  expect(facts?.textContent).toContain(`Output ${MARKUP}hdfs:///data/predictions: 2 files`);
  expect(facts?.textContent).toContain('hdfs:///data/one: 1 file,');
  expect(page.querySelector('img')).toBeNull();
});

test('shows where a version and the final model come from, once it is requested', async () => {
  const fake = new FakeSubmarine();
  fake.models = [1, 2].map(time => {
    const version = `v${String(time)}`;
    return { version, name: version, time, size: 2, files: 3, digest: 'd' };
  });
  fake.lineageRows = [
    ['Notebook', 'digits.ipynb, cell 7'],
    ['Data', MARKUP]
  ];
  const model = new CardModel(fake, trans, JOB, null);
  model.setVisible(true);
  fake.sendView(view({ outputs: [{ path: 'model/digits.keras', size: 1 }] }));
  await Promise.resolve();
  const before = renderCard(model);
  const labels = [...before.querySelectorAll('.jp-Submarine-lineage button')];
  expect(labels.map(one => one.textContent)).toEqual([
    'Origin of the model',
    'Origin of v2',
    'Origin of v1'
  ]);
  expect(before.querySelector('.jp-Submarine-lineage dl')).toBeNull();
  await model.loadLineage('v1');
  const page = renderCard(model);
  const pressed = page.querySelector('.jp-Submarine-lineage button[aria-pressed="true"]');
  expect(pressed?.textContent).toBe('Origin of v1');
  const rows = page.querySelector('.jp-Submarine-lineage dl');
  expect(rows?.textContent).toBe(`Notebookdigits.ipynb, cell 7Data${MARKUP}`);
  expect(page.querySelector('img')).toBeNull();
  fake.lineageError = new Error('No such version.');
  await expect(model.loadLineage('v3')).rejects.toThrow('No such version.');
});

test('a job without a model, and a snapshot, offer no origin', () => {
  expect(renderCard(liveModel(view())).querySelector('.jp-Submarine-lineage')).toBeNull();
  const outputs = [{ path: 'model/digits.keras', size: 1 }];
  const snapshot = readSnapshot({ job_id: JOB, record: record({ outputs }) });
  const page = renderCard(new CardModel(null, trans, JOB, snapshot));
  expect(page.querySelector('.jp-Submarine-lineage')).toBeNull();
});
