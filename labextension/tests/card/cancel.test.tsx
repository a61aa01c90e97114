import React from 'react';
import { renderToStaticMarkup } from 'react-dom/server';
import { expect, test } from 'vitest';
import { Card } from '../../src/card/card';
import { cancellation } from '../../src/card/cancellation';
import { CardModel } from '../../src/card/model';
import { FakeSubmarine, JOB, task, trans, view } from './fakes';

const context = { trans, has: () => true, run: () => Promise.resolve() };

function setUp() {
  const fake = new FakeSubmarine();
  const model = new CardModel(fake, trans, JOB, null);
  model.setVisible(true);
  fake.sendView(view());
  const page = (): Document =>
    new DOMParser().parseFromString(
      renderToStaticMarkup(<Card model={model} context={context} trusted={true} />),
      'text/html'
    );
  const pill = () => page().querySelector('.jp-Submarine-pill')?.textContent;
  const button = () => page().querySelector<HTMLButtonElement>('.jp-mod-warn');
  return { fake, model, page, pill, button };
}

test('shows a requested cancellation at once and until the job has ended', async () => {
  const { fake, model, page, pill, button } = setUp();
  let changes = 0;
  model.changed.connect(() => {
    changes++;
  });
  const request = fake.cancels.request(JOB, 'why');
  expect(changes).toBe(1);
  expect(pill()).toBe('CANCELLING');
  expect(page().querySelector('.jp-Submarine-sentence')?.textContent).toMatch(
    /^Cancellation was requested .*RUN/
  );
  expect([button()?.disabled, button()?.textContent]).toEqual([true, 'Cancelling …']);
  await request;
  fake.setConnected(false);
  fake.setConnected(true);
  fake.sendView(view());
  expect(pill()).toBe('CANCELLING');
  fake.sendView(view({ state: 'CANCELLED' }));
  expect(pill()).toBe('CANCELLED');
  expect(fake.cancels.get(JOB)).toBeNull();
});

test('shows the state of the server again after a failed cancel request', async () => {
  const { fake, pill, button } = setUp();
  fake.cancelError = new Error('Not your job.');
  const request = fake.cancels.request(JOB, 'why');
  expect(pill()).toBe('CANCELLING');
  await expect(request).rejects.toThrow('Not your job.');
  expect(pill()).toBe('RUNNING');
  expect(button()?.disabled).toBe(false);
});

test('reads cancel requests of other pages from the events; old ones are overdue', () => {
  const event = { seq: 1, writer: 'agent', state: null, reason: null, detail: '', task: null };
  const requested = view({}, { events: [{ ...event, kind: 'cancel_requested', time: 1000 }] });
  expect(cancellation(requested, null, 1010)).toEqual({ since: 1000, overdue: false });
  expect(cancellation(requested, null, 1200)).toEqual({ since: 1000, overdue: true });
  expect(cancellation(requested, { since: 1190 }, 1200)).toEqual({ since: 1190, overdue: false });
  const ended = view({ state: 'FAILED' }, { events: requested.events });
  expect(cancellation(ended, null, 1010)).toBeNull();
  expect(cancellation(view(), null, 1010)).toBeNull();
});

test('ignores requests for other jobs, and all requests after dispose', async () => {
  const { fake, model, pill } = setUp();
  await fake.cancels.request('other-20261122-abcd', 'why');
  expect(pill()).toBe('RUNNING');
  let changes = 0;
  model.changed.connect(() => {
    changes++;
  });
  model.dispose();
  await fake.cancels.request(JOB, 'why');
  expect(changes).toBe(0);
});

test('a failure has a link to the log of the failed task', () => {
  const failed = view(
    {
      state: 'FAILED',
      tasks: [task(0), task(1, { state: 'FAILED' })],
      failure: { type: 'E', message: '', frames: [], text: '' }
    },
    { log_task: 'worker:0', task_count: 2 }
  );
  const fake = new FakeSubmarine();
  const model = new CardModel(fake, trans, JOB, null);
  model.setVisible(true);
  fake.sendView(failed);
  const page = renderToStaticMarkup(<Card model={model} context={context} trusted={true} />);
  expect(page).toContain('Log of worker:1');
});
