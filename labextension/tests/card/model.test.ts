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

function snapshot(changes: Parameters<typeof record>[0] = {}): ISnapshot {
  const found = readSnapshot({ job_id: JOB, time: 1234, record: record(changes) });
  if (!found) {
    throw new Error('The test has a wrong snapshot.');
  }
  return found;
}

test('shows the snapshot at once and subscribes when the card is visible', () => {
  const fake = new FakeSubmarine();
  const model = new CardModel(fake, trans, JOB, snapshot());
  expect(model.view?.record.name).toBe('digits');
  expect(model.connection).toBe('loading');
  expect(fake.subscriptions).toEqual([]);
  model.setVisible(true);
  expect(fake.open).toEqual(['job']);
  fake.sendView(view({ state: 'SUCCEEDED' }));
  expect(model.connection).toBe('live');
  expect(model.fromServer).toBe(true);
  expect(model.view?.record.state).toBe('SUCCEEDED');
});

test('a later snapshot does not replace the view from the server', () => {
  const fake = new FakeSubmarine();
  const model = new CardModel(fake, trans, JOB, snapshot());
  model.setVisible(true);
  fake.sendView(view({ state: 'SUCCEEDED' }));
  model.setSnapshot(snapshot({ state: 'RUNNING' }));
  expect(model.view?.record.state).toBe('SUCCEEDED');
});

test('ignores a view of another job', () => {
  const fake = new FakeSubmarine();
  const model = new CardModel(fake, trans, JOB, snapshot());
  model.setVisible(true);
  fake.sendView(view({ job_id: 'other-20261120-0000', state: 'FAILED' }));
  expect(model.connection).toBe('loading');
  expect(model.view?.record.state).toBe('RUNNING');
});

test('keeps the snapshot with its time and shows the error of the server', () => {
  const fake = new FakeSubmarine();
  const model = new CardModel(fake, trans, JOB, snapshot());
  model.setVisible(true);
  fake.sendError('There is no such job.');
  expect(model).toMatchObject({
    connection: 'stale',
    problem: 'There is no such job.',
    time: 1234
  });
  expect(model.fromServer).toBe(false);
  fake.sendView(view());
  expect(model).toMatchObject({ connection: 'live', problem: '' });
});

test('shows the reason if the server extension is not available', async () => {
  const fake = new FakeSubmarine();
  fake.ready = Promise.resolve({ available: false, problem: 'It is not installed.' });
  const model = new CardModel(fake, trans, JOB, snapshot());
  model.setVisible(true);
  await vi.runAllTimersAsync();
  expect(model).toMatchObject({ connection: 'stale', problem: 'It is not installed.' });
  const disconnected = new CardModel(null, trans, JOB, snapshot());
  disconnected.setVisible(true);
  expect(disconnected.connection).toBe('stale');
  expect(disconnected.problem).not.toBe('');
});

test('the view is stale while the connection is lost', () => {
  const fake = new FakeSubmarine();
  const model = new CardModel(fake, trans, JOB, snapshot());
  model.setVisible(true);
  fake.sendView(view());
  fake.setConnected(false);
  expect(model.connection).toBe('stale');
  expect(model.fromServer).toBe(true);
  expect(model.time).not.toBe(1234);
  fake.setConnected(true);
  expect(model.connection).toBe('live');
});

test('the view of an ended job does not become stale', () => {
  const fake = new FakeSubmarine();
  const model = new CardModel(fake, trans, JOB, snapshot());
  model.setVisible(true);
  fake.sendView(view({ state: 'SUCCEEDED' }));
  fake.setConnected(false);
  expect(model.connection).toBe('live');
});

test('subscribes to metrics once a task has started', () => {
  const fake = new FakeSubmarine();
  const model = new CardModel(fake, trans, JOB, null);
  model.setVisible(true);
  fake.sendView(view({ tasks: [task(0, { started: null })] }));
  expect(fake.open).toEqual(['job']);
  fake.sendView(view());
  fake.sendView(view());
  expect(fake.open).toEqual(['job', 'metrics']);
  const series = [
    { task: 'worker:0', attempt: 'e1-a1', name: 'loss', kind: 'scalar', unit: '', t: [], v: [] }
  ] as const;
  fake.sendSeries(series.map(one => ({ ...one, t: [], v: [] })));
  expect(model.series).toHaveLength(1);
});

test('unsubscribes after a delay when hidden and subscribes again when visible', () => {
  const fake = new FakeSubmarine();
  const model = new CardModel(fake, trans, JOB, snapshot());
  model.setVisible(true);
  fake.sendView(view());
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

test('dispose ends all subscriptions and ignores later messages', async () => {
  const fake = new FakeSubmarine();
  const model = new CardModel(fake, trans, JOB, snapshot());
  const changed = vi.fn();
  model.changed.connect(changed);
  model.setVisible(true);
  fake.sendView(view());
  model.dispose();
  const before = changed.mock.calls.length;
  fake.sendView(view({ state: 'FAILED' }));
  fake.sendError('x');
  fake.setConnected(false);
  fake.sendSeries([]);
  model.setVisible(true);
  await vi.runAllTimersAsync();
  expect(fake.open).toEqual([]);
  expect(changed.mock.calls).toHaveLength(before);
});

test('loads the models at the start and when the state changes, not with every view', async () => {
  const fake = new FakeSubmarine();
  fake.models = [{ version: 'v1', name: '', time: 1, size: 2, files: 3, digest: 'd' }];
  const model = new CardModel(fake, trans, JOB, null);
  model.setVisible(true);
  fake.sendView(view());
  fake.sendView(view({ progress: 0.5 }));
  await vi.runAllTimersAsync();
  expect(fake.modelsRequested).toHaveBeenCalledTimes(1);
  expect(model.models).toEqual(fake.models);
  fake.sendView(view({ state: 'SUCCEEDED' }));
  expect(fake.modelsRequested).toHaveBeenCalledTimes(2);
});
