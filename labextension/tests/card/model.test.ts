import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { CardModel } from '../../src/card/model';
import { type ISnapshot, readSnapshot } from '../../src/card/snapshot';
import { FakeSubmarine, JOB, record, task, trans, view } from './fakes';

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

function snapshot(more: Parameters<typeof record>[0] = {}): ISnapshot {
  const found = readSnapshot({ job_id: JOB, time: 1234, record: record(more) });
  if (!found) {
    throw new Error('The test has a wrong snapshot.');
  }
  return found;
}

test('the snapshot is there at once; the server is asked when the card is seen', () => {
  const fake = new FakeSubmarine();
  const model = new CardModel(fake, trans, JOB, snapshot());
  expect(model.view?.record.name).toBe('digits');
  expect(model.connection).toBe('loading');
  expect(fake.subscriptions).toEqual([]);
  model.setVisible(true);
  expect(fake.open).toEqual(['job']);
  fake.say(view({ state: 'SUCCEEDED' }));
  expect(model.connection).toBe('live');
  expect(model.fromServer).toBe(true);
  expect(model.view?.record.state).toBe('SUCCEEDED');
});

test('what the kernel sends later does not replace what the server says', () => {
  const fake = new FakeSubmarine();
  const model = new CardModel(fake, trans, JOB, snapshot());
  model.setVisible(true);
  fake.say(view({ state: 'SUCCEEDED' }));
  model.setSnapshot(snapshot({ state: 'RUNNING' }));
  expect(model.view?.record.state).toBe('SUCCEEDED');
});

test('a view of another job is not shown', () => {
  const fake = new FakeSubmarine();
  const model = new CardModel(fake, trans, JOB, snapshot());
  model.setVisible(true);
  fake.say(view({ job_id: 'other-20261120-0000', state: 'FAILED' }));
  expect(model.connection).toBe('loading');
  expect(model.view?.record.state).toBe('RUNNING');
});

test('out of reach: the snapshot stays, with the reason and its time', () => {
  const fake = new FakeSubmarine();
  const model = new CardModel(fake, trans, JOB, snapshot());
  model.setVisible(true);
  fake.fail('There is no such job.');
  expect(model).toMatchObject({
    connection: 'stale',
    problem: 'There is no such job.',
    time: 1234
  });
  expect(model.fromServer).toBe(false);
  fake.say(view());
  expect(model).toMatchObject({ connection: 'live', problem: '' });
});

test('no server extension: the card says so', async () => {
  const fake = new FakeSubmarine();
  fake.ready = Promise.resolve({ available: false, problem: 'It is not installed.' });
  const model = new CardModel(fake, trans, JOB, snapshot());
  model.setVisible(true);
  await vi.runAllTimersAsync();
  expect(model).toMatchObject({ connection: 'stale', problem: 'It is not installed.' });
  const alone = new CardModel(null, trans, JOB, snapshot());
  alone.setVisible(true);
  expect(alone.connection).toBe('stale');
  expect(alone.problem).not.toBe('');
});

test('a broken connection is said, and taken back', () => {
  const fake = new FakeSubmarine();
  const model = new CardModel(fake, trans, JOB, snapshot());
  model.setVisible(true);
  fake.say(view());
  fake.setConnected(false);
  expect(model.connection).toBe('stale');
  expect(model.fromServer).toBe(true);
  expect(model.time).not.toBe(1234);
  fake.setConnected(true);
  expect(model.connection).toBe('live');
});

test('of a job that has ended nothing can get old', () => {
  const fake = new FakeSubmarine();
  const model = new CardModel(fake, trans, JOB, snapshot());
  model.setVisible(true);
  fake.say(view({ state: 'SUCCEEDED' }));
  fake.setConnected(false);
  expect(model.connection).toBe('live');
});

test('curves are asked for once something has run', () => {
  const fake = new FakeSubmarine();
  const model = new CardModel(fake, trans, JOB, null);
  model.setVisible(true);
  fake.say(view({ tasks: [task(0, { started: null })] }));
  expect(fake.open).toEqual(['job']);
  fake.say(view());
  fake.say(view());
  expect(fake.open).toEqual(['job', 'metrics']);
  const series = [
    { task: 'worker:0', attempt: 'e1-a1', name: 'loss', kind: 'scalar', unit: '', t: [], v: [] }
  ] as const;
  fake.measure(series.map(one => ({ ...one, t: [], v: [] })));
  expect(model.series).toHaveLength(1);
});

test('out of sight it stops listening after a moment, and begins again', () => {
  const fake = new FakeSubmarine();
  const model = new CardModel(fake, trans, JOB, snapshot());
  model.setVisible(true);
  fake.say(view());
  model.setVisible(false);
  expect(fake.open).toHaveLength(2);
  vi.advanceTimersByTime(500);
  model.setVisible(true);
  vi.advanceTimersByTime(5000);
  expect(fake.open).toHaveLength(2);
  expect(fake.subscriptions).toHaveLength(2);
  model.setVisible(false);
  vi.advanceTimersByTime(5000);
  expect(fake.open).toEqual([]);
  model.setVisible(true);
  expect(fake.open).toEqual(['job', 'metrics']);
});

test('dispose ends everything, also what is under way', async () => {
  const fake = new FakeSubmarine();
  const model = new CardModel(fake, trans, JOB, snapshot());
  const changed = vi.fn();
  model.changed.connect(changed);
  model.setVisible(true);
  fake.say(view());
  model.dispose();
  const before = changed.mock.calls.length;
  fake.say(view({ state: 'FAILED' }));
  fake.fail('x');
  fake.setConnected(false);
  fake.measure([]);
  model.setVisible(true);
  await vi.runAllTimersAsync();
  expect(fake.open).toEqual([]);
  expect(changed.mock.calls).toHaveLength(before);
});

test('models are listed at first and when the state changes, not with every view', async () => {
  const fake = new FakeSubmarine();
  fake.models = [{ version: 'v1', name: '', time: 1, size: 2, files: 3, digest: 'd' }];
  const model = new CardModel(fake, trans, JOB, null);
  model.setVisible(true);
  fake.say(view());
  fake.say(view({ progress: 0.5 }));
  await vi.runAllTimersAsync();
  expect(fake.asked).toHaveBeenCalledTimes(1);
  expect(model.models).toEqual(fake.models);
  fake.say(view({ state: 'SUCCEEDED' }));
  expect(fake.asked).toHaveBeenCalledTimes(2);
});
