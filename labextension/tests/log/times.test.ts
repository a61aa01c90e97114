import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { LineTimes } from '../../src/log/lines/line_times';
import { LogModel } from '../../src/log/model';
import { FakeLogs } from './fakes';

const OUT = 'worker:0/e1-a1/stdout';

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

function setUp(times: [number, number][]) {
  const fake = new FakeLogs();
  fake.set(OUT, 'one\ntwo\nthree\nfour');
  const model = new LogModel({
    submarine: fake.submarine,
    job: 'job',
    filter: { task: '', stream: '', attempt: 'latest' },
    schedule: run => {
      run();
    }
  });
  const logTimes = vi.fn(() => Promise.resolve({ attempt: 'e1-a1', times, exact: true }));
  const onTimes = vi.fn();
  return { fake, model, logTimes, onTimes, lines: new LineTimes({ logTimes }, model, onTimes) };
}

test('a line has the write time of its last byte, or none if it is unknown', async () => {
  const { model, logTimes, onTimes, lines } = setUp([
    [2, 10],
    [8, 11],
    [13, 12]
  ]);
  await model.open();
  await vi.runAllTimersAsync();
  expect(logTimes).not.toHaveBeenCalled();
  lines.enabled = true;
  await vi.runAllTimersAsync();
  expect(logTimes).toHaveBeenCalledExactlyOnceWith(
    'job',
    { task: 'worker:0', attempt: 'e1-a1', stream: 'stdout' },
    0,
    14
  );
  expect(model.window.rows.map(row => row.time)).toEqual([11000, 11000, null, null]);
  expect(onTimes).toHaveBeenCalledOnce();
});

test('requests no times twice, for live lines or after dispose', async () => {
  const { fake, model, logTimes, lines } = setUp([]);
  await model.open();
  lines.enabled = true;
  await vi.runAllTimersAsync();
  fake.write(OUT, ' and more\nheard\n');
  await vi.runAllTimersAsync();
  const liveTime = model.window.rows.at(-1)?.time;
  expect(typeof liveTime).toBe('number');
  expect(logTimes.mock.calls.length).toBeLessThanOrEqual(2);
  const before = logTimes.mock.calls.length;
  await model.goTo('end');
  lines.dispose();
  await vi.runAllTimersAsync();
  expect(logTimes.mock.calls.length).toBe(before);
});

test('a failed request for times is not an error of the log', async () => {
  const { model, logTimes, lines } = setUp([]);
  const warn = vi.spyOn(console, 'warn').mockImplementation(() => undefined);
  logTimes.mockRejectedValue(new Error('HDFS is away.'));
  await model.open();
  lines.enabled = true;
  await vi.runAllTimersAsync();
  expect(model.status.phase).toBe('ready');
  expect(warn).toHaveBeenCalledOnce();
  warn.mockRestore();
});
