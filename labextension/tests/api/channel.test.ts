import { ServerConnection } from '@jupyterlab/services';
import { nullTranslator } from '@jupyterlab/translation';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { Channel } from '../../src/api/channel/channel';
import type { IJobView, ISeries, IJobRow, IKernelStart } from '../../src/api/types';
import type { ClientMessage, ServerMessage } from '../../src/api/channel/messages';
import { API, VERSION } from '../../src/api/readiness';
import type { ILogListener } from '../../src/tokens';

/** The other end of a websocket. */
class FakeSocket {
  static all: FakeSocket[] = [];
  static get last(): FakeSocket {
    const found = FakeSocket.all.at(-1);
    if (!found) {
      throw new Error('nothing was opened');
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

  /** The server accepts and says hello. */
  accept(api: number = API): void {
    this.readyState = WebSocket.OPEN;
    this.onopen?.();
    this.say({ type: 'hello', version: VERSION, api });
  }

  say(message: ServerMessage): void {
    this.onmessage?.({ data: JSON.stringify(message) });
  }

  /** The connection breaks. */
  cut(): void {
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

interface IHeard extends ILogListener {
  text: string;
  said: string[];
}

/** Puts what it hears together, and fails on any byte that is not the next one. */
function listener(): IHeard {
  const next = new Map<string, number>();
  const heard: IHeard = {
    text: '',
    said: [],
    chunk: (where, offset, data) => {
      const key = `${where.task}/${where.attempt}/${where.stream}`;
      expect(offset).toBe(next.get(key) ?? offset);
      next.set(key, offset + data.length);
      heard.text += new TextDecoder().decode(data);
    },
    skip: (where, from, to) => {
      heard.said.push(`skip ${from} ${to}`);
      next.set(`${where.task}/${where.attempt}/${where.stream}`, to);
    },
    behind: seconds => heard.said.push(`behind ${seconds ?? '?'}`),
    end: () => heard.said.push('end'),
    error: message => heard.said.push(message)
  };
  return heard;
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

test('opens with the first subscription and closes a little after the last', () => {
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

test('carries the token in the address only where JupyterLab does', () => {
  open({ appendToken: true }).jobs(() => undefined);
  expect(FakeSocket.last.url).toMatch(/channel\?token=secret$/);
});

test('listeners of one thing share a subscription and each hears what is known', () => {
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
  FakeSocket.last.say({ id: sub?.id ?? -1, type: 'job', view: view('RUNNING') });
  const second = channel.job(
    'a-1',
    v => late.push(v),
    () => undefined
  );
  expect(FakeSocket.last.subscribed('job')).toHaveLength(1);
  expect([first.length, late.length]).toEqual([1, 1]);
  second.dispose();
  FakeSocket.last.say({ id: sub?.id ?? -1, type: 'job', view: view('SUCCEEDED') });
  expect([first.length, late.length]).toEqual([2, 1]);
});

test('notebooks whose kernels are prepared share one subscription', () => {
  const channel = open();
  const heard: string[] = [];
  const tell = (starts: readonly IKernelStart[]) => heard.push(starts[0]?.words ?? '');
  const subscriptions = [channel.starts(tell), channel.starts(tell)];
  FakeSocket.last.accept();
  const [sub, ...more] = FakeSocket.last.subscribed('starts');
  expect(more).toEqual([]);
  const starts = [{ kernel: 'gpu4', notebook: 'a.ipynb', words: 'Packing' }];
  FakeSocket.last.say({ id: sub?.id ?? -1, type: 'starts', starts });
  expect(heard).toEqual(['Packing', 'Packing']);
  subscriptions.forEach(one => {
    one.dispose();
  });
  expect(FakeSocket.last.sent.at(-1)).toEqual({ op: 'unsubscribe', id: sub?.id });
});

test('a listener that throws does not silence the others', () => {
  const said = vi.spyOn(console, 'error').mockImplementation(() => undefined);
  const channel = open();
  const heard: number[] = [];
  channel.jobs(() => {
    throw new Error('mine');
  });
  channel.jobs((_, total) => heard.push(total));
  FakeSocket.last.accept();
  const [sub] = FakeSocket.last.subscribed('jobs');
  const news = { rows: [], whole: true, problem: '', total: 3 };
  FakeSocket.last.say({ id: sub?.id ?? -1, type: 'jobs', ...news });
  expect(heard).toEqual([3]);
  expect(said).toHaveBeenCalledOnce();
});

test('jobs stay whole from changes: running first, then newest', () => {
  const channel = open();
  let rows: readonly IJobRow[] = [];
  channel.jobs(found => (rows = found));
  FakeSocket.last.accept();
  const id = FakeSocket.last.subscribed('jobs')[0]?.id ?? -1;
  const rest = { id, type: 'jobs', total: 3, problem: '' } as const;
  const start = [row('a-1', 'RUNNING', 1), row('b-1', 'FAILED', 9), row('c-1', 'PENDING', 5)];
  FakeSocket.last.say({ ...rest, whole: true, rows: start });
  expect(rows.map(r => r.job_id)).toEqual(['c-1', 'a-1', 'b-1']);
  FakeSocket.last.say({ ...rest, whole: false, rows: [row('c-1', 'SUCCEEDED', 5)] });
  expect(rows.map(r => r.job_id)).toEqual(['a-1', 'b-1', 'c-1']);
  FakeSocket.last.say({ ...rest, whole: true, rows: [row('d-1', 'RUNNING', 1)] });
  expect(rows.map(r => r.job_id)).toEqual(['d-1']);
});

test('no byte of a log is lost or doubled over broken connections', () => {
  const channel = open();
  const heard = listener();
  channel.log('a-1', { tasks: ['*'], tail: 100 }, heard);
  let socket = FakeSocket.last;
  socket.accept();
  expect(socket.subscribed('log')[0]).toMatchObject({ at: {}, tail: 100, job: 'a-1' });
  let id = socket.subscribed('log')[0]?.id ?? -1;
  socket.say(log(id, 10, 'hello '));
  socket.say(log(id, 16, 'wor'));
  socket.cut();
  expect(channel.connected).toBe(false);
  vi.advanceTimersByTime(300);
  socket = FakeSocket.last;
  socket.accept();
  expect(socket.subscribed('log')[0]).toMatchObject({ at: { 'worker:0/e1-a1/stdout': 19 } });
  id = socket.subscribed('log')[0]?.id ?? -1;
  // The server begins earlier than asked, twice.
  socket.say(log(id, 16, 'world'));
  socket.say(log(id, 16, 'world'));
  socket.say(log(id, 21, '!'));
  expect(heard.text).toBe('hello world!');
  expect(heard.said).toEqual([]);
});

test('missing bytes are asked for again; those that are gone are said to be skipped', () => {
  const channel = open();
  const heard = listener();
  channel.log('a-1', { tasks: ['worker:0'], at: { 'worker:0/e1-a1/stdout': 4 } }, heard);
  const socket = FakeSocket.last;
  socket.accept();
  const first = socket.subscribed('log')[0]?.id ?? -1;
  socket.say(log(first, 8, 'xx'));
  expect(socket.sent.slice(-2).map(m => m.op)).toEqual(['unsubscribe', 'subscribe']);
  const second = socket.subscribed('log')[1]?.id ?? -1;
  expect(second).not.toBe(first);
  socket.say(log(first, 10, 'of the old subscription'));
  socket.say(log(second, 8, 'xx'));
  socket.say({ id: second, type: 'skip', ...WHERE, offset: 9, to: 20 });
  socket.say(log(second, 20, 'end'));
  expect(heard.text).toBe('xxend');
  expect(heard.said).toEqual(['skip 4 8', 'skip 10 20']);
});

test('acknowledges every byte of log data, doubled ones too', () => {
  const channel = open();
  channel.log('a-1', { tasks: ['*'] }, listener());
  const socket = FakeSocket.last;
  socket.accept();
  const id = socket.subscribed('log')[0]?.id ?? -1;
  socket.say(log(id, 0, 'abc'));
  socket.say(log(id, 0, 'abc'));
  const acks = () => socket.sent.flatMap(m => (m.op === 'ack' ? [m.bytes] : []));
  expect(acks()).toEqual([]);
  vi.advanceTimersByTime(60);
  expect(acks()).toEqual([6]);
  socket.say(log(id, 3, 'x'.repeat(200_000)));
  expect(acks()).toEqual([6, 200_000]);
});

test('waits longer and longer, but not where the network or the page comes back', async () => {
  const channel = open();
  channel.jobs(() => undefined);
  const pauses: number[] = [];
  for (let round = 0; round < 9; round++) {
    const before = FakeSocket.all.length;
    FakeSocket.last.cut();
    await Promise.resolve();
    let waited = 0;
    while (FakeSocket.all.length === before) {
      vi.advanceTimersByTime(50);
      waited += 50;
    }
    pauses.push(waited);
  }
  expect(pauses).toEqual([250, 500, 1000, 2000, 4000, 8000, 16_000, 30_000, 30_000]);
  FakeSocket.last.cut();
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

test('a connection that falls silent after its greetings is given up', () => {
  const channel = open();
  channel.jobs(() => undefined);
  FakeSocket.last.accept();
  const hello = { type: 'hello', version: VERSION, api: API } as const;
  vi.advanceTimersByTime(300_000);
  // Said once only: such a server may be silent for long.
  expect(FakeSocket.all).toHaveLength(1);
  FakeSocket.last.say(hello);
  vi.advanceTimersByTime(60_000);
  FakeSocket.last.say(hello);
  vi.advanceTimersByTime(60_000);
  expect(FakeSocket.all).toHaveLength(1);
  vi.advanceTimersByTime(35_000);
  expect(FakeSocket.all).toHaveLength(2);
});

test('a connection that does not open is given up', () => {
  open().jobs(() => undefined);
  vi.advanceTimersByTime(25_000);
  expect(FakeSocket.all.length).toBeGreaterThan(1);
});

test('where the server extension is absent everybody is told, once and for all', async () => {
  absent = 'It is not there.';
  const channel = open();
  const said: string[] = [];
  channel.job(
    'a-1',
    () => undefined,
    message => said.push(message)
  );
  channel.jobs((_rows, _total, problem) => said.push(problem));
  FakeSocket.last.cut();
  await vi.advanceTimersByTimeAsync(100_000);
  expect(said).toEqual([absent, absent]);
  const count = FakeSocket.all.length;
  channel.job(
    'b-1',
    () => undefined,
    message => said.push(message)
  );
  await vi.advanceTimersByTimeAsync(100_000);
  expect(said).toHaveLength(3);
  expect(FakeSocket.all).toHaveLength(count);
});

test('a server that speaks otherwise is left alone, in one line', async () => {
  const channel = open();
  const said: string[] = [];
  channel.job(
    'a-1',
    () => undefined,
    message => said.push(message)
  );
  FakeSocket.last.accept(API + 1);
  await vi.advanceTimersByTimeAsync(100_000);
  expect(said).toHaveLength(1);
  expect(said[0]).toContain('Reload the page');
  expect(FakeSocket.all).toHaveLength(1);
  expect(channel.connected).toBe(false);
});

test('what the server could not serve is tried again; a mistake is not; an end is an end', () => {
  const channel = open();
  const said: string[] = [];
  channel.job(
    'a-1',
    () => undefined,
    message => said.push(message)
  );
  channel.job(
    'gone-1',
    () => undefined,
    message => said.push(message)
  );
  channel.job(
    'old-1',
    () => undefined,
    message => said.push(message)
  );
  const socket = FakeSocket.last;
  socket.accept();
  const [one, two, three] = socket.subscribed('job');
  const error = { type: 'error', error: 'HDFS is away.', fix: 'Wait.' } as const;
  socket.say({ id: one?.id ?? -1, ...error, code: 'unreachable' });
  socket.say({ id: two?.id ?? -1, ...error, code: 'usage' });
  socket.say({ id: three?.id ?? -1, type: 'end' });
  expect(said).toEqual(['HDFS is away. Wait.', 'HDFS is away. Wait.']);
  const jobs = () => socket.subscribed('job').map(m => 'job' in m && m.job);
  vi.advanceTimersByTime(20_000);
  expect(jobs()).toEqual(['a-1', 'gone-1', 'old-1', 'a-1']);
  // Ever more seldom: a notebook from elsewhere may name many jobs that nobody knows.
  socket.say({ id: socket.subscribed('job')[3]?.id ?? -1, ...error, code: 'not_found' });
  vi.advanceTimersByTime(20_000);
  expect(jobs()).toHaveLength(4);
  vi.advanceTimersByTime(20_000);
  expect(jobs()).toHaveLength(5);
  socket.cut();
  vi.advanceTimersByTime(1000);
  FakeSocket.last.accept();
  expect(FakeSocket.last.subscribed('job').map(m => 'job' in m && m.job)).toEqual(['a-1']);
});

test('a page of many cards keeps within what the server allows', () => {
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
  channel.log('a-1', { tasks: ['*'] }, listener());
  expect(socket.subscribed('job')).toHaveLength(52);
  expect(socket.subscribed('log')).toHaveLength(1);
  socket.say({ id: socket.subscribed('job')[0]?.id ?? -1, type: 'end' });
  expect(socket.subscribed('job')).toHaveLength(52);
  socket.say({ id: socket.subscribed('job')[1]?.id ?? -1, type: 'end' });
  expect(socket.subscribed('job')).toHaveLength(53);
});

test('curves grow by their new points and are fetched whole before they grow too long', () => {
  const channel = open();
  let series: readonly ISeries[] = [];
  channel.metrics('a-1', 2, news => (series = news));
  const socket = FakeSocket.last;
  socket.accept();
  const id = socket.subscribed('metrics')[0]?.id ?? -1;
  const cpu = { task: 'w', attempt: '1', name: 'cpu', kind: 'resource', unit: '%' } as const;
  const say = (whole: boolean, t: number[]) => {
    socket.say({ id, type: 'metrics', whole, series: [{ ...cpu, t, v: t }] });
  };
  say(true, [1, 2]);
  say(false, [2, 3]);
  expect(series[0]?.t).toEqual([1, 2, 3]);
  say(false, [4, 5, 6, 7]);
  expect(socket.subscribed('metrics')).toHaveLength(2);
});

test('nonsense from the wire harms nobody', () => {
  vi.spyOn(console, 'error').mockImplementation(() => undefined);
  const channel = open();
  const heard = listener();
  channel.log('a-1', { tasks: ['*'] }, heard);
  const socket = FakeSocket.last;
  socket.accept();
  for (const data of ['', '{', 'null', '[]', '3', '{"id":1}', new ArrayBuffer(3)]) {
    socket.onmessage?.({ data });
  }
  const id = socket.subscribed('log')[0]?.id ?? -1;
  socket.onmessage?.({ data: JSON.stringify({ id, type: 'log', ...WHERE, data: '%%%' }) });
  socket.say(log(id, 0, 'fine'));
  expect(heard.text).toBe('fine');
});
