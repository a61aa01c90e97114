import { ServerConnection } from '@jupyterlab/services';
import { nullTranslator } from '@jupyterlab/translation';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { Channel } from '../../src/api/channel/channel';
import type { IJobView, ISeries, IJobRow, IKernelStart } from '../../src/api/types';
import type { ClientMessage, ServerMessage } from '../../src/api/channel/messages';
import { API, VERSION } from '../../src/api/readiness';
import type { ILogListener } from '../../src/tokens';

/** A websocket whose server side is controlled by the test. */
class FakeSocket {
  static all: FakeSocket[] = [];
  static get last(): FakeSocket {
    const found = FakeSocket.all.at(-1);
    if (!found) {
      throw new Error('no socket was opened');
    }
    return found;
  }

  readyState: number = WebSocket.CONNECTING;
  onopen: (() => void) | null = null;
  onmessage: ((event: { data: unknown }) => void) | null = null;
  onclose: (() => void) | null = null;
  readonly sent: ClientMessage[] = [];

  constructor(readonly url: string) {
    FakeSocket.all.push(this);
  }

  send(text: string): void {
    this.sent.push(JSON.parse(text) as ClientMessage);
  }

  close(): void {
    this.readyState = WebSocket.CLOSED;
  }

  /** Open the connection and send the hello message. */
  accept(api: number = API): void {
    this.readyState = WebSocket.OPEN;
    this.onopen?.();
    this.receive({ type: 'hello', version: VERSION, api });
  }

  /** Deliver a message of the server. */
  receive(message: ServerMessage): void {
    this.onmessage?.({ data: JSON.stringify(message) });
  }

  /** Lose the connection. */
  disconnect(): void {
    this.readyState = WebSocket.CLOSED;
    this.onclose?.();
  }

  subscribed(kind: string) {
    const found = this.sent.filter(m => m.op === 'subscribe' && m.kind === kind);
    return found as Extract<ClientMessage, { op: 'subscribe' }>[];
  }
}

const trans = nullTranslator.load('jupyter_submarine');
let absent = '';
const opened: Channel[] = [];

function open(options: Partial<ServerConnection.ISettings> = {}): Channel {
  const settings = ServerConnection.makeSettings({
    baseUrl: 'http://localhost/user/a%20b/',
    wsUrl: 'ws://localhost/user/a%20b/',
    token: 'secret',
    appendToken: false,
    ...options,
    WebSocket: FakeSocket as unknown as typeof WebSocket
  });
  const channel = new Channel(settings, trans, () => Promise.resolve(absent));
  opened.push(channel);
  return channel;
}

interface IRecordedLog extends ILogListener {
  text: string;
  calls: string[];
}

/** Records log data and fails on a byte that is not the next one. */
function logRecorder(): IRecordedLog {
  const next = new Map<string, number>();
  const recorded: IRecordedLog = {
    text: '',
    calls: [],
    chunk: (where, offset, data) => {
      const key = `${where.task}/${where.attempt}/${where.stream}`;
      expect(offset).toBe(next.get(key) ?? offset);
      next.set(key, offset + data.length);
      recorded.text += new TextDecoder().decode(data);
    },
    skip: (where, from, to) => {
      recorded.calls.push(`skip ${from} ${to}`);
      next.set(`${where.task}/${where.attempt}/${where.stream}`, to);
    },
    behind: seconds => recorded.calls.push(`behind ${seconds ?? '?'}`),
    end: () => recorded.calls.push('end'),
    error: message => recorded.calls.push(message)
  };
  return recorded;
}

const WHERE = { task: 'worker:0', attempt: 'e1-a1', stream: 'stdout' } as const;

function log(id: number, offset: number, text: string): ServerMessage {
  return { id, type: 'log', ...WHERE, offset, data: btoa(text) };
}

function row(job_id: string, state: IJobRow['state'], created: number): IJobRow {
  return { job_id, state, created } as IJobRow;
}

function view(state: IJobRow['state']): IJobView {
  return { record: { job_id: 'a-1', state } } as IJobView;
}

beforeEach(() => {
  vi.useFakeTimers();
  FakeSocket.all = [];
  absent = '';
  vi.spyOn(Math, 'random').mockReturnValue(0.5);
});

afterEach(() => {
  for (const channel of opened.splice(0)) {
    channel.dispose();
  }
  vi.useRealTimers();
  vi.restoreAllMocks();
});

test('opens with the first subscription and closes some seconds after the last', () => {
  const channel = open();
  expect(FakeSocket.all).toHaveLength(0);
  const one = channel.jobs(() => undefined);
  const two = channel.job(
    'a-1',
    () => undefined,
    () => undefined
  );
  expect(FakeSocket.all).toHaveLength(1);
  expect(FakeSocket.last.url).toBe('ws://localhost/user/a%20b/submarine/api/v1/channel');
  const changes: boolean[] = [];
  channel.connectedChanged.connect((_, connected) => changes.push(connected));
  FakeSocket.last.accept();
  expect(channel.connected).toBe(true);
  one.dispose();
  one.dispose();
  two.dispose();
  expect(two.isDisposed).toBe(true);
  expect(FakeSocket.last.sent.map(m => m.op)).toEqual([
    'subscribe',
    'subscribe',
    'unsubscribe',
    'unsubscribe'
  ]);
  vi.advanceTimersByTime(2000);
  const three = channel.jobs(() => undefined);
  vi.advanceTimersByTime(20_000);
  expect(FakeSocket.last.readyState).toBe(WebSocket.OPEN);
  three.dispose();
  vi.advanceTimersByTime(20_000);
  expect(FakeSocket.last.readyState).toBe(WebSocket.CLOSED);
  expect(FakeSocket.all).toHaveLength(1);
  expect(changes).toEqual([true, false]);
  channel.jobs(() => undefined);
  expect(FakeSocket.all).toHaveLength(2);
});

test('appends the token to the URL only if JupyterLab does', () => {
  open({ appendToken: true }).jobs(() => undefined);
  expect(FakeSocket.last.url).toMatch(/channel\?token=secret$/);
});

test('listeners of one job share a subscription and receive the known view', () => {
  const channel = open();
  const first: IJobView[] = [];
  const late: IJobView[] = [];
  channel.job(
    'a-1',
    v => first.push(v),
    () => undefined
  );
  FakeSocket.last.accept();
  const [sub] = FakeSocket.last.subscribed('job');
  FakeSocket.last.receive({ id: sub?.id ?? -1, type: 'job', view: view('RUNNING') });
  const second = channel.job(
    'a-1',
    v => late.push(v),
    () => undefined
  );
  expect(FakeSocket.last.subscribed('job')).toHaveLength(1);
  expect([first.length, late.length]).toEqual([1, 1]);
  second.dispose();
  FakeSocket.last.receive({ id: sub?.id ?? -1, type: 'job', view: view('SUCCEEDED') });
  expect([first.length, late.length]).toEqual([2, 1]);
});

test('listeners for kernel starts share one subscription', () => {
  const channel = open();
  const recorded: string[] = [];
  const onStarts = (starts: readonly IKernelStart[]) => recorded.push(starts[0]?.words ?? '');
  const subscriptions = [channel.starts(onStarts), channel.starts(onStarts)];
  FakeSocket.last.accept();
  const [sub, ...more] = FakeSocket.last.subscribed('starts');
  expect(more).toEqual([]);
  const starts = [{ kernel: 'gpu4', notebook: 'a.ipynb', words: 'Packing' }];
  FakeSocket.last.receive({ id: sub?.id ?? -1, type: 'starts', starts });
  expect(recorded).toEqual(['Packing', 'Packing']);
  subscriptions.forEach(one => {
    one.dispose();
  });
  expect(FakeSocket.last.sent.at(-1)).toEqual({ op: 'unsubscribe', id: sub?.id });
});

test('an exception in one listener does not affect the others', () => {
  const consoleError = vi.spyOn(console, 'error').mockImplementation(() => undefined);
  const channel = open();
  const recorded: number[] = [];
  channel.jobs(() => {
    throw new Error('mine');
  });
  channel.jobs((_, total) => recorded.push(total));
  FakeSocket.last.accept();
  const [sub] = FakeSocket.last.subscribed('jobs');
  const message = { rows: [], whole: true, problem: '', total: 3 };
  FakeSocket.last.receive({ id: sub?.id ?? -1, type: 'jobs', ...message });
  expect(recorded).toEqual([3]);
  expect(consoleError).toHaveBeenCalledOnce();
});

test('merges changed rows into the job list: running jobs first, then the newest', () => {
  const channel = open();
  let rows: readonly IJobRow[] = [];
  channel.jobs(found => (rows = found));
  FakeSocket.last.accept();
  const id = FakeSocket.last.subscribed('jobs')[0]?.id ?? -1;
  const rest = { id, type: 'jobs', total: 3, problem: '' } as const;
  const start = [row('a-1', 'RUNNING', 1), row('b-1', 'FAILED', 9), row('c-1', 'PENDING', 5)];
  FakeSocket.last.receive({ ...rest, whole: true, rows: start });
  expect(rows.map(r => r.job_id)).toEqual(['c-1', 'a-1', 'b-1']);
  FakeSocket.last.receive({ ...rest, whole: false, rows: [row('c-1', 'SUCCEEDED', 5)] });
  expect(rows.map(r => r.job_id)).toEqual(['a-1', 'b-1', 'c-1']);
  FakeSocket.last.receive({ ...rest, whole: true, rows: [row('d-1', 'RUNNING', 1)] });
  expect(rows.map(r => r.job_id)).toEqual(['d-1']);
});

test('delivers each byte of a log once across reconnections', () => {
  const channel = open();
  const recorded = logRecorder();
  channel.log('a-1', { tasks: ['*'], tail: 100 }, recorded);
  let socket = FakeSocket.last;
  socket.accept();
  expect(socket.subscribed('log')[0]).toMatchObject({ at: {}, tail: 100, job: 'a-1' });
  let id = socket.subscribed('log')[0]?.id ?? -1;
  socket.receive(log(id, 10, 'hello '));
  socket.receive(log(id, 16, 'wor'));
  socket.disconnect();
  expect(channel.connected).toBe(false);
  vi.advanceTimersByTime(300);
  socket = FakeSocket.last;
  socket.accept();
  expect(socket.subscribed('log')[0]).toMatchObject({ at: { 'worker:0/e1-a1/stdout': 19 } });
  id = socket.subscribed('log')[0]?.id ?? -1;
  // The server starts earlier than requested, twice.
  socket.receive(log(id, 16, 'world'));
  socket.receive(log(id, 16, 'world'));
  socket.receive(log(id, 21, '!'));
  expect(recorded.text).toBe('hello world!');
  expect(recorded.calls).toEqual([]);
});

test('requests missing bytes again and reports them as skipped if they are gone', () => {
  const channel = open();
  const recorded = logRecorder();
  channel.log('a-1', { tasks: ['worker:0'], at: { 'worker:0/e1-a1/stdout': 4 } }, recorded);
  const socket = FakeSocket.last;
  socket.accept();
  const first = socket.subscribed('log')[0]?.id ?? -1;
  socket.receive(log(first, 8, 'xx'));
  expect(socket.sent.slice(-2).map(m => m.op)).toEqual(['unsubscribe', 'subscribe']);
  const second = socket.subscribed('log')[1]?.id ?? -1;
  expect(second).not.toBe(first);
  socket.receive(log(first, 10, 'of the old subscription'));
  socket.receive(log(second, 8, 'xx'));
  socket.receive({ id: second, type: 'skip', ...WHERE, offset: 9, to: 20 });
  socket.receive(log(second, 20, 'end'));
  expect(recorded.text).toBe('xxend');
  expect(recorded.calls).toEqual(['skip 4 8', 'skip 10 20']);
});

test('acknowledges every byte of log data, including repeated bytes', () => {
  const channel = open();
  channel.log('a-1', { tasks: ['*'] }, logRecorder());
  const socket = FakeSocket.last;
  socket.accept();
  const id = socket.subscribed('log')[0]?.id ?? -1;
  socket.receive(log(id, 0, 'abc'));
  socket.receive(log(id, 0, 'abc'));
  const acks = () => socket.sent.flatMap(m => (m.op === 'ack' ? [m.bytes] : []));
  expect(acks()).toEqual([]);
  vi.advanceTimersByTime(60);
  expect(acks()).toEqual([6]);
  socket.receive(log(id, 3, 'x'.repeat(200_000)));
  expect(acks()).toEqual([6, 200_000]);
});

test('increases the pause between attempts and retries at once when network or page are back', async () => {
  const channel = open();
  channel.jobs(() => undefined);
  const pauses: number[] = [];
  for (let round = 0; round < 9; round++) {
    const before = FakeSocket.all.length;
    FakeSocket.last.disconnect();
    await Promise.resolve();
    let waited = 0;
    while (FakeSocket.all.length === before) {
      vi.advanceTimersByTime(50);
      waited += 50;
    }
    pauses.push(waited);
  }
  expect(pauses).toEqual([250, 500, 1000, 2000, 4000, 8000, 16_000, 30_000, 30_000]);
  FakeSocket.last.disconnect();
  const before = FakeSocket.all.length;
  window.dispatchEvent(new Event('online'));
  expect(FakeSocket.all).toHaveLength(before + 1);
  FakeSocket.last.accept();
  document.dispatchEvent(new Event('visibilitychange'));
  expect(FakeSocket.all).toHaveLength(before + 1);
  vi.advanceTimersByTime(60_000);
  document.dispatchEvent(new Event('visibilitychange'));
  expect(FakeSocket.all).toHaveLength(before + 2);
});

test('replaces a connection that stops sending hello messages', () => {
  const channel = open();
  channel.jobs(() => undefined);
  FakeSocket.last.accept();
  const hello = { type: 'hello', version: VERSION, api: API } as const;
  vi.advanceTimersByTime(300_000);
  // A server that sent one hello only may send no message for a long time.
  expect(FakeSocket.all).toHaveLength(1);
  FakeSocket.last.receive(hello);
  vi.advanceTimersByTime(60_000);
  FakeSocket.last.receive(hello);
  vi.advanceTimersByTime(60_000);
  expect(FakeSocket.all).toHaveLength(1);
  vi.advanceTimersByTime(35_000);
  expect(FakeSocket.all).toHaveLength(2);
});

test('replaces a connection that does not open in time', () => {
  open().jobs(() => undefined);
  vi.advanceTimersByTime(25_000);
  expect(FakeSocket.all.length).toBeGreaterThan(1);
});

test('reports a missing server extension once per listener and stops connecting', async () => {
  absent = 'It is not there.';
  const channel = open();
  const errors: string[] = [];
  channel.job(
    'a-1',
    () => undefined,
    message => errors.push(message)
  );
  channel.jobs((_rows, _total, problem) => errors.push(problem));
  FakeSocket.last.disconnect();
  await vi.advanceTimersByTimeAsync(100_000);
  expect(errors).toEqual([absent, absent]);
  const count = FakeSocket.all.length;
  channel.job(
    'b-1',
    () => undefined,
    message => errors.push(message)
  );
  await vi.advanceTimersByTimeAsync(100_000);
  expect(errors).toHaveLength(3);
  expect(FakeSocket.all).toHaveLength(count);
});

test('reports an incompatible protocol version once and stops connecting', async () => {
  const channel = open();
  const errors: string[] = [];
  channel.job(
    'a-1',
    () => undefined,
    message => errors.push(message)
  );
  FakeSocket.last.accept(API + 1);
  await vi.advanceTimersByTimeAsync(100_000);
  expect(errors).toHaveLength(1);
  expect(errors[0]).toContain('Reload the page');
  expect(FakeSocket.all).toHaveLength(1);
  expect(channel.connected).toBe(false);
});

test('restarts a subscription after a temporary error, not after a permanent one or its end', () => {
  const channel = open();
  const errors: string[] = [];
  channel.job(
    'a-1',
    () => undefined,
    message => errors.push(message)
  );
  channel.job(
    'gone-1',
    () => undefined,
    message => errors.push(message)
  );
  channel.job(
    'old-1',
    () => undefined,
    message => errors.push(message)
  );
  const socket = FakeSocket.last;
  socket.accept();
  const [one, two, three] = socket.subscribed('job');
  const error = { type: 'error', error: 'HDFS is away.', fix: 'Wait.' } as const;
  socket.receive({ id: one?.id ?? -1, ...error, code: 'unreachable' });
  socket.receive({ id: two?.id ?? -1, ...error, code: 'usage' });
  socket.receive({ id: three?.id ?? -1, type: 'end' });
  expect(errors).toEqual(['HDFS is away. Wait.', 'HDFS is away. Wait.']);
  const jobs = () => socket.subscribed('job').map(m => 'job' in m && m.job);
  vi.advanceTimersByTime(20_000);
  expect(jobs()).toEqual(['a-1', 'gone-1', 'old-1', 'a-1']);
  // The pause increases: a notebook from another cluster may contain many unknown jobs.
  socket.receive({ id: socket.subscribed('job')[3]?.id ?? -1, ...error, code: 'not_found' });
  vi.advanceTimersByTime(20_000);
  expect(jobs()).toHaveLength(4);
  vi.advanceTimersByTime(20_000);
  expect(jobs()).toHaveLength(5);
  socket.disconnect();
  vi.advanceTimersByTime(1000);
  FakeSocket.last.accept();
  expect(FakeSocket.last.subscribed('job').map(m => 'job' in m && m.job)).toEqual(['a-1']);
});

test('limits the subscriptions of a page with many cards', () => {
  const channel = open();
  for (let number = 0; number < 100; number++) {
    channel.job(
      `a-${number}`,
      () => undefined,
      () => undefined
    );
  }
  const socket = FakeSocket.last;
  socket.accept();
  channel.log('a-1', { tasks: ['*'] }, logRecorder());
  expect(socket.subscribed('job')).toHaveLength(52);
  expect(socket.subscribed('log')).toHaveLength(1);
  socket.receive({ id: socket.subscribed('job')[0]?.id ?? -1, type: 'end' });
  expect(socket.subscribed('job')).toHaveLength(52);
  socket.receive({ id: socket.subscribed('job')[1]?.id ?? -1, type: 'end' });
  expect(socket.subscribed('job')).toHaveLength(53);
});

test('appends new points and requests complete series before they become too long', () => {
  const channel = open();
  let series: readonly ISeries[] = [];
  channel.metrics('a-1', 2, update => (series = update));
  const socket = FakeSocket.last;
  socket.accept();
  const id = socket.subscribed('metrics')[0]?.id ?? -1;
  const cpu = { task: 'w', attempt: '1', name: 'cpu', kind: 'resource', unit: '%' } as const;
  const send = (whole: boolean, t: number[]) => {
    socket.receive({ id, type: 'metrics', whole, series: [{ ...cpu, t, v: t }] });
  };
  send(true, [1, 2]);
  send(false, [2, 3]);
  expect(series[0]?.t).toEqual([1, 2, 3]);
  send(false, [4, 5, 6, 7]);
  expect(socket.subscribed('metrics')).toHaveLength(2);
});

test('ignores invalid messages', () => {
  vi.spyOn(console, 'error').mockImplementation(() => undefined);
  const channel = open();
  const recorded = logRecorder();
  channel.log('a-1', { tasks: ['*'] }, recorded);
  const socket = FakeSocket.last;
  socket.accept();
  for (const data of ['', '{', 'null', '[]', '3', '{"id":1}', new ArrayBuffer(3)]) {
    socket.onmessage?.({ data });
  }
  const id = socket.subscribed('log')[0]?.id ?? -1;
  socket.onmessage?.({ data: JSON.stringify({ id, type: 'log', ...WHERE, data: '%%%' }) });
  socket.receive(log(id, 0, 'fine'));
  expect(recorded.text).toBe('fine');
});
