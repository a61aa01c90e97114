import { expect, test } from 'vitest';
import { isJobId, readSnapshot } from '../../src/card/snapshot';
import { JOB, record } from './fakes';

test.each([
  '',
  'digits',
  '../../etc/passwd',
  `${JOB}/../x`,
  `${JOB}\n`,
  `${JOB}?token=1`,
  'DIGITS-20261120-7f3a',
  `-${JOB}`,
  `${'a'.repeat(64)}-20261120-7f3a`,
  7,
  null,
  undefined,
  { toString: () => JOB },
  [JOB]
])('%j is not a job id and yields no snapshot', value => {
  expect(isJobId(value)).toBe(false);
  expect(readSnapshot({ job_id: value, record: record() })).toBeNull();
});

test.each([null, undefined, 7, 'text', [], [JOB], { record: record() }])(
  'the output %j yields no snapshot',
  data => {
    expect(readSnapshot(data)).toBeNull();
  }
);

test('reads the output of the Python package', () => {
  const found = readSnapshot({
    version: 1,
    job_id: JOB,
    name: 'digits',
    source: 'live',
    time: 1234.5,
    pending: 'Queue gpu is full.',
    advice: 'Ask for less.',
    status: 'The program is running on node1.',
    log_task: 'worker:0',
    result: { accuracy: '0.97' },
    roles: { worker: { RUNNING: 198, FAILED: 2 } },
    record: record()
  });
  expect(found?.time).toBe(1234.5);
  expect(found?.result).toEqual({ accuracy: '0.97' });
  expect(found?.view.pending).toBe('Queue gpu is full.');
  expect(found?.view.advice).toBe('Ask for less.');
  expect(found?.view.status).toBe('The program is running on node1.');
  expect(found?.view.task_count).toBe(200);
  const { logs, ...rest } = record();
  expect(found?.view.record).toEqual({ ...rest, logs });
});

test('ignores permissions, command and notebook of a snapshot', () => {
  const found = readSnapshot({
    job_id: JOB,
    mine: true,
    command: 'rm -rf /',
    notebook: '/etc/passwd',
    has_tensorboard: true,
    record: { ...record(), mine: true }
  });
  expect(found?.view).toMatchObject({
    mine: false,
    command: '',
    notebook: '',
    has_tensorboard: false
  });
});

test('uses the job id of the output for the record', () => {
  const found = readSnapshot({ job_id: JOB, record: record({ job_id: 'other-20261120-0000' }) });
  expect(found?.view.record.job_id).toBe(JOB);
});

test('drops every field of a wrong type', () => {
  const values: unknown[] = [null, 7, 'x', [], {}, true, Infinity, NaN, [[]], [null], 1e300, -1];
  const names = Object.keys(record()).filter(name => name !== 'job_id');
  for (const value of values) {
    for (const name of names) {
      const found = readSnapshot({
        job_id: JOB,
        [name]: value,
        record: { ...record(), [name]: value }
      });
      expect(found).not.toBeNull();
      const job = found?.view.record;
      for (const text of [job?.name, job?.user, job?.detail, job?.pending]) {
        expect(typeof text).toBe('string');
      }
      for (const number of [job?.created, job?.finished, job?.progress, job?.behind]) {
        expect(number === null || Number.isFinite(number)).toBe(true);
      }
      for (const list of [job?.phases, job?.tasks, job?.missing, job?.hints, job?.outputs]) {
        expect(Array.isArray(list)).toBe(true);
      }
    }
  }
});

test('drops invalid items of lists and keeps the others', () => {
  const found = readSnapshot({
    job_id: JOB,
    record: {
      ...record(),
      state: '<img src=x onerror=alert(1)>',
      tasks: [null, 7, {}, { task: 'worker:0', gpus: [1, 'GPU-1'], restarts: -5, state: 'X' }],
      phases: [{ name: 'run' }, { name: 'run', start: 5 }],
      hints: ['good', 7, null],
      links: { page: 'javascript:alert(1)', number: 7 },
      failure: { type: 'E', frames: [null, { file: 'a.py', line: 1.5 }] }
    }
  });
  const job = found?.view.record;
  expect(job?.state).toBe('LOST');
  expect(job?.tasks.map(one => [one.task, one.role, one.gpus, one.restarts, one.state])).toEqual([
    ['worker:0', 'worker', ['GPU-1'], 0, 'LOST']
  ]);
  expect(job?.phases).toEqual([{ name: 'run', start: 5, end: null }]);
  expect(job?.hints).toEqual(['good']);
  expect(job?.failure?.frames.map(frame => frame.line)).toEqual([0, 0]);
});

test('replaces control characters in texts and truncates long texts', () => {
  const found = readSnapshot({
    job_id: JOB,
    name: 'a\u202egnp.exe\u0007\ud800',
    record: { ...record(), detail: 'x'.repeat(1e6), hints: Array(5000).fill('h'.repeat(9999)) }
  });
  expect(found?.view.record.name).toBe('a\ufffdgnp.exe\ufffd\ufffd');
  expect(found?.view.record.detail).toHaveLength(4000);
  expect(found?.view.record.hints).toHaveLength(50);
  expect(found?.view.record.hints[0]).toHaveLength(4000);
});

test('ignores __proto__ in the data', () => {
  const data = JSON.parse(
    `{"job_id": "${JOB}", "record": {"__proto__": {"state": "FAILED"}, "links": {"__proto__": "http://x/"}}}`
  ) as unknown;
  const found = readSnapshot(data);
  expect(Object.getPrototypeOf(found?.view.record.links)).toBe(Object.prototype);
  expect(({} as Record<string, unknown>)['state']).toBeUndefined();
});
