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
  fake.say(view());
  const page = (): Document =>
    new DOMParser().parseFromString(
      renderToStaticMarkup(<Card model={model} context={context} trusted={true} />),
      'text/html'
    );
  const pill = () => page().querySelector('.jp-Submarine-pill')?.textContent;
  const button = () => page().querySelector<HTMLButtonElement>('.jp-mod-warn');
  return { fake, model, page, pill, button };
}

test('a job that was asked to end says so at once, until it has ended', async () => {
  const { fake, model, page, pill, button } = setUp();
  let news = 0;
  model.changed.connect(() => {
    news++;
  });
  const asked = fake.cancels.request(JOB, 'why');
  expect(news).toBe(1);
  expect(pill()).toBe('CANCELLING');
  expect(page().querySelector('.jp-Submarine-sentence')?.textContent).toMatch(
    /^Cancellation was requested .*RUN/
  );
  expect([button()?.disabled, button()?.textContent]).toEqual([true, 'Cancelling …']);
  await asked;
  fake.setConnected(false);
  fake.setConnected(true);
  fake.say(view());
  expect(pill()).toBe('CANCELLING');
  fake.say(view({ state: 'CANCELLED' }));
  expect(pill()).toBe('CANCELLED');
  expect(fake.cancels.get(JOB)).toBeNull();
});

test('where it failed the card says again what the server says', async () => {
  const { fake, pill, button } = setUp();
  fake.cancelFails = new Error('Not your job.');
  const asked = fake.cancels.request(JOB, 'why');
  expect(pill()).toBe('CANCELLING');
  await expect(asked).rejects.toThrow('Not your job.');
  expect(pill()).toBe('RUNNING');
  expect(button()?.disabled).toBe(false);
});

test('what another page asked for is known from the events, and not believed for ever', () => {
  const event = { seq: 1, writer: 'agent', state: null, reason: null, detail: '', task: null };
  const asked = view({}, { events: [{ ...event, kind: 'cancel_requested', time: 1000 }] });
  expect(cancellation(asked, null, 1010)).toEqual({ since: 1000, overdue: false });
  expect(cancellation(asked, null, 1200)).toEqual({ since: 1000, overdue: true });
  expect(cancellation(asked, { since: 1190 }, 1200)).toEqual({ since: 1190, overdue: false });
  const ended = view({ state: 'FAILED' }, { events: asked.events });
  expect(cancellation(ended, null, 1010)).toBeNull();
  expect(cancellation(view(), null, 1010)).toBeNull();
});

test("another job's request, and a card that is gone, are not told", async () => {
  const { fake, model, pill } = setUp();
  await fake.cancels.request('other-20261122-abcd', 'why');
  expect(pill()).toBe('RUNNING');
  let news = 0;
  model.changed.connect(() => {
    news++;
  });
  model.dispose();
  await fake.cancels.request(JOB, 'why');
  expect(news).toBe(0);
});

test('a traceback leads to the log of the task that failed', () => {
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
  fake.say(failed);
  const page = renderToStaticMarkup(<Card model={model} context={context} trusted={true} />);
  expect(page).toContain('Log of worker:1');
});
