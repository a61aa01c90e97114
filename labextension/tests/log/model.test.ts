import { expect, test } from 'vitest';
import { LiveQueue, MAX_QUEUED } from '../../src/log/live';
import { LogModel } from '../../src/log/model';
import { selectLogs } from '../../src/log/lines/sources';
import { LIMITS } from '../../src/log/lines/window';
import { FakeLogs } from './fakes';

const OUT = 'worker:0/e1-a1/stdout';
const ERR = 'worker:0/e1-a1/stderr';
const ALL = { task: '', stream: '', attempt: 'latest' } as const;

function open(fake: FakeLogs, filter: LogModel['filter'] = ALL, page = 64 * 1024): LogModel {
  const schedule = (run: () => void) => {
    run();
  };
  return new LogModel({ submarine: fake.submarine, job: 'j', filter, page, schedule });
}

const texts = (model: LogModel) =>
  model.window.rows.map(row => (row.kind === 'skip' ? `skip ${row.offset}-${row.end}` : row.text));

const numbered = (from: number, to: number, width = 60) =>
  Array.from({ length: to - from }, (_, i) => `${from + i} `.padEnd(width, '.')).join('\n') + '\n';

/** Check that every byte between a source's `lo` and `hi` is in exactly one line, in order. */
function expectComplete(model: LogModel): void {
  for (const source of model.sources) {
    let next = source.lo;
    for (const row of model.window.rows) {
      if (row.source === source) {
        if (row.offset !== next) {
          expect.fail(`a line of ${source.key} begins at ${row.offset}, not at ${next}`);
        }
        next = row.end;
      }
    }
    expect(next).toBe(source.hi);
  }
}

test('opens at the end with one read and subscribes to later bytes', async () => {
  const fake = new FakeLogs();
  fake.set(OUT, numbered(0, 20000));
  const length = fake.logs.get(OUT)?.length ?? 0;
  const model = open(fake);
  await model.open();
  expect(fake.reads).toEqual([{ at: { [OUT]: length }, end: true, limit: 64 * 1024 }]);
  expect(fake.subscriptions).toEqual([{ at: { [OUT]: length }, tasks: ['*'] }]);
  expect(texts(model).at(-1)).toMatch(/^19999 /);
  expect(model.canEarlier).toBe(true);
  expect(model.canLater).toBe(false);
  expectComplete(model);
});

test.each([1, 3, 17, 4096])('shows each byte once with chunks of %d bytes', async step => {
  const fake = new FakeLogs();
  fake.set(OUT, 'first\npart');
  const model = open(fake);
  await model.open();
  fake.write(OUT, 'ly ünfinished 🐘\n 1%\r 2%\r\u001b[31mred\u001b[0m\r\nlast', step);
  expect(texts(model)).toEqual(['first', 'partly ünfinished 🐘', 'red', 'last']);
  expectComplete(model);
});

test('shows data that arrives while the end is being read exactly once', async () => {
  const fake = new FakeLogs();
  fake.set(OUT, 'a\n');
  const model = open(fake);
  await model.open();
  let release: () => void = () => undefined;
  fake.gate = new Promise(resolve => (release = resolve));
  const navigation = model.goTo('end');
  fake.write(OUT, 'b\nc');
  fake.write(OUT, 'c\n');
  release();
  await navigation;
  fake.write(OUT, 'd\n');
  expect(texts(model)).toEqual(['a', 'b', 'cc', 'd']);
  expectComplete(model);
});

test('ignores a repeated chunk and shows a gap that can be read', async () => {
  const fake = new FakeLogs();
  fake.set(OUT, 'a\n');
  const model = open(fake);
  await model.open();
  fake.write(OUT, 'b\n');
  fake.listener?.chunk(
    { task: 'worker:0', attempt: 'e1-a1', stream: 'stdout' },
    0,
    fake.logs.get(OUT) ?? new Uint8Array()
  );
  fake.writeSkipped(OUT, 'hidden\n');
  fake.write(OUT, 'after\n');
  expect(texts(model)).toEqual(['a', 'b', 'skip 4-11', 'after']);
  expect(model.window.skipped).toBe(7);
  expectComplete(model);
  const [source] = model.sources;
  if (source !== undefined) {
    await model.goTo({ source, offset: 4 });
  }
  expect(texts(model)).toEqual(['a', 'b', 'hidden', 'after']);
  fake.write(OUT, 'more\n');
  expect(texts(model).at(-1)).toBe('more');
  expectComplete(model);
});

test('limits the window for a fast log and keeps the first line while not following', async () => {
  const fake = new FakeLogs();
  fake.set(OUT, '');
  const model = open(fake);
  await model.open();
  fake.write(OUT, numbered(0, 15000), 65536);
  expect(model.window.rows.length).toBeLessThanOrEqual(LIMITS.rows);
  expect(texts(model).at(-1)).toMatch(/^14999 /);
  expectComplete(model);
  model.follow = false;
  const first = texts(model)[0];
  fake.write(OUT, numbered(15000, 22000), 65536);
  expect(texts(model)[0]).toBe(first);
  expect(model.window.rows.length).toBeLessThan(LIMITS.rows + 2000);
  expect(model.canLater).toBe(true);
  expectComplete(model);
  for (let i = 0; model.canLater && i < 100; i++) {
    await model.later();
    expectComplete(model);
  }
  expect(texts(model).at(-1)).toMatch(/^21999 /);
  model.follow = true;
  fake.write(OUT, 'joined\n');
  expect(texts(model).at(-1)).toBe('joined');
});

test('reads back to the first byte and forward to the last one', async () => {
  const fake = new FakeLogs();
  fake.set(OUT, numbered(0, 9000));
  fake.set(ERR, numbered(0, 900, 200));
  const model = open(fake);
  await model.open();
  model.follow = false;
  const seen = new Set<number>();
  for (let i = 0; model.canEarlier && i < 200; i++) {
    await model.earlier();
    expectComplete(model);
    for (const row of model.window.rows.filter(one => one.source.key === OUT)) {
      seen.add(Number.parseInt(row.text, 10));
    }
  }
  expect(seen.size).toBe(9000);
  expect(texts(model)[0]).toMatch(/^0 /);
  for (let i = 0; model.canLater && i < 200; i++) {
    await model.later();
  }
  expectComplete(model);
  expect(model.sources.every(source => source.hi === source.length)).toBe(true);
});

test('a progress bar that spans many pages is one line', async () => {
  const fake = new FakeLogs();
  const bar = Array.from({ length: 20000 }, (_, i) => `\r${i} of 20000`).join('');
  fake.set(OUT, `begin\n${bar}\nend\n`);
  const model = open(fake);
  await model.open();
  model.follow = false;
  for (let i = 0; model.canEarlier && i < 50; i++) {
    await model.earlier();
    expectComplete(model);
  }
  expect(texts(model)).toEqual(['begin', '19999 of 20000', 'end']);
});

test('adds a new attempt of the selected task and ignores other tasks and streams', async () => {
  const fake = new FakeLogs();
  fake.set(OUT, 'one\n');
  fake.set('worker:1/e1-a1/stdout', 'not this\n');
  const model = open(fake, { task: 'worker:0', stream: 'stdout', attempt: 'latest' });
  await model.open();
  fake.write('worker:0/e2-a1/stdout', 'two\n');
  fake.write('worker:0/e2-a1/stderr', 'not this\n');
  fake.write('worker:1/e1-a1/stdout', 'nor this\n');
  expect(texts(model)).toEqual(['one', 'two']);
  expect(model.logs.length).toBe(4);
});

test('orders attempts by number and not alphabetically', () => {
  const log = (attempt: string) => ({ task: 'w:0', attempt, stream: 'stdout' as const, length: 1 });
  const logs = [log('e9-a1'), log('e10-a1'), log('e10-a0')];
  expect(selectLogs(logs, ALL).map(one => one.attempt)).toEqual(['e10-a1']);
  expect(selectLogs(logs, { ...ALL, attempt: '' }).map(one => one.attempt)).toEqual([
    'e9-a1',
    'e10-a0',
    'e10-a1'
  ]);
});

test('reports a failed open and succeeds on retry', async () => {
  const fake = new FakeLogs();
  fake.failure = new Error('HDFS is away.');
  const model = open(fake);
  await model.open();
  expect(model.status).toMatchObject({ phase: 'error', message: 'HDFS is away.' });
  fake.failure = null;
  fake.set(OUT, 'there\n');
  await model.open();
  expect(model.status.phase).toBe('ready');
  expect(texts(model)).toEqual(['there']);
});

test('a paused queue stays bounded and keeps the position of dropped data', () => {
  const received: [number, number][] = [];
  const queue = new LiveQueue(
    chunks => {
      received.push(...chunks.map(({ offset, data }): [number, number] => [offset, data.length]));
    },
    run => {
      run();
    }
  );
  queue.paused = true;
  const where = { task: 'w:0', attempt: 'e1-a1', stream: 'stdout' };
  const size = 16 * 1024;
  for (let i = 0; i < 3000; i++) {
    queue.push(where, i * size, new Uint8Array(size));
  }
  queue.paused = false;
  expect(received.length).toBeLessThan(1400);
  expect(received.reduce((sum, [, length]) => sum + length, 0)).toBeLessThanOrEqual(MAX_QUEUED);
  const [, kept] = [
    received.filter(([, length]) => length === 0),
    received.filter(([, n]) => n > 0)
  ];
  expect(kept[0]?.[0]).toBe(received.filter(([, n]) => n === 0).at(-1)?.[0]);
  expect(kept.at(-1)).toEqual([2999 * size, size]);
});

test('opens at the beginning when following is off', async () => {
  const fake = new FakeLogs();
  fake.set(OUT, 'line\n'.repeat(100_000));
  const model = open(fake);
  model.follow = false;
  await model.open();
  expect(model.sources[0]?.lo).toBe(0);
  expect(model.canLater).toBe(true);
});

test('applies the last of two filters that are set in quick succession', async () => {
  const fake = new FakeLogs();
  fake.set(OUT, 'out\n');
  fake.set(ERR, 'err\n');
  const model = open(fake);
  await model.open();
  await Promise.all([
    model.setFilter({ ...ALL, stream: 'stdout' }),
    model.setFilter({ ...ALL, stream: 'stderr' })
  ]);
  expect(model.status.phase).toBe('ready');
  expect(texts(model)).toEqual(['err']);
});

test.each([1, 7, 1000])(
  'nested progress bars are the same live and after a new read, with chunks of %d bytes',
  async step => {
    const fake = new FakeLogs();
    fake.set(OUT, 'begin\n');
    const model = open(fake);
    await model.open();
    const inner = Array.from({ length: 300 }, (_, n) => `\n\rinner ${n}\u001b[A`).join('');
    fake.write(OUT, `\router 0${inner}\router 1${inner}\router 2\n\nend\n`, step);
    const lines = ['begin', 'outer 2', 'inner 299', 'end'];
    expect(texts(model)).toEqual(lines);
    expectComplete(model);
    await model.goTo('end');
    expect(texts(model)).toEqual(lines);
    expectComplete(model);
  }
);

test('ends with the last log when one read does not cover all logs', async () => {
  const fake = new FakeLogs();
  const names = Array.from({ length: 100 }, (_, n) => `worker:${n}/e1-a1/stdout`);
  names.forEach((name, n) => {
    fake.set(name, `first of ${n}\n${'.'.repeat(500)}\nlast of ${n}\n`);
  });
  const model = open(fake);
  await model.open();
  expect(model.canLater).toBe(false);
  expect(texts(model).at(-1)).toBe('last of 99');
  for (let i = 0; model.canEarlier && i < 50; i++) {
    await model.earlier();
    expectComplete(model);
  }
  const last = texts(model).filter(text => text.startsWith('last'));
  expect(last).toEqual(names.map((_, n) => `last of ${n}`));
});

/** Two tasks that write in turn: task and stream, with the time of each line. */
function interleaved(fake: FakeLogs, count: number): string[] {
  const names = [OUT, ERR, 'worker:1/e1-a1/stdout'];
  const all: string[] = [];
  for (let time = 1; time <= count; time++) {
    const key = names[(time * 7) % 3] ?? OUT;
    const text = `line ${time} ${'.'.repeat((time * 13) % 90)}`;
    const before = fake.logs.get(key)?.length ?? 0;
    fake.set(key, new TextDecoder().decode(fake.logs.get(key)) + `${text}\n`);
    const marks = fake.times.get(key) ?? [];
    fake.times.set(key, [...marks, [before + text.length + 1, time]]);
    all.push(text);
  }
  return all;
}

test.each([300, 4096, 64 * 1024])(
  'lines of several logs are in order of time in both directions, with pages of %d bytes',
  async page => {
    const fake = new FakeLogs();
    const all = interleaved(fake, 150);
    const model = open(fake, ALL, page);
    await model.open();
    expect(texts(model).at(-1)).toBe(all.at(-1));
    model.follow = false;
    for (let i = 0; model.canEarlier && i < 300; i++) {
      await model.earlier();
      expectComplete(model);
    }
    expect(texts(model)).toEqual(all);
    expect(model.window.rows.map(row => row.time)).toEqual(all.map((_, n) => (n + 1) * 1000));
    await model.goTo('start');
    for (let i = 0; model.canLater && i < 300; i++) {
      await model.later();
      expectComplete(model);
    }
    expect(texts(model)).toEqual(all);
    const [source] = model.sources;
    for (let offset = 0; source !== undefined && offset < source.length; offset += 1777) {
      await model.goTo({ source, offset });
      for (let i = 0; model.canEarlier && i < 300; i++) {
        await model.earlier();
      }
      for (let i = 0; model.canLater && i < 300; i++) {
        await model.later();
      }
      expectComplete(model);
      expect(texts(model)).toEqual(all);
    }
  }
);

test('live lines come after all lines that were read, and wait if later ones are missing', async () => {
  const fake = new FakeLogs();
  const all = interleaved(fake, 150);
  const model = open(fake, ALL, 4096);
  await model.open();
  fake.write('worker:1/e1-a1/stdout', 'new one\n');
  fake.write(OUT, 'new two\n');
  expect(texts(model).slice(-3)).toEqual([all.at(-1), 'new one', 'new two']);
  model.follow = false;
  await model.goTo('start');
  fake.write(ERR, 'new three\n');
  expect(texts(model).some(text => text.startsWith('new'))).toBe(false);
  for (let i = 0; model.canLater && i < 300; i++) {
    await model.later();
  }
  // Without an index of the new lines, they have the last known time of their log.
  expect(
    texts(model)
      .filter(text => text.startsWith('new'))
      .sort()
  ).toEqual(['new one', 'new three', 'new two']);
  fake.write(OUT, 'new four\n');
  expect(texts(model).at(-1)).toBe('new four');
  expectComplete(model);
});

test('reads the logs that the first read omits in their order', async () => {
  const fake = new FakeLogs();
  const names = Array.from({ length: 30 }, (_, n) => `worker:${n}/e1-a1/stdout`);
  names.forEach((name, n) => {
    fake.set(name, `last of ${n}\n`);
  });
  const model = open(fake);
  model.follow = false;
  await model.open();
  for (let i = 0; model.canLater && i < 50; i++) {
    await model.later();
  }
  expect(texts(model)).toEqual(names.map((_, n) => `last of ${n}`));
});

test('lists the log of helpers after the streams of the program', () => {
  const place = { task: 'worker:0', attempt: 'e1-a1', length: 1 };
  const logs = (['helper', 'stderr', 'stdout'] as const).map(stream => ({ ...place, stream }));
  expect(selectLogs(logs, ALL).map(one => one.stream)).toEqual(['stdout', 'stderr', 'helper']);
  expect(selectLogs(logs, { ...ALL, stream: 'helper' })).toHaveLength(1);
});
