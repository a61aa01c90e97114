/** A kernel in a container: what its notebook is told while it starts, and when it is gone. */

import { nullTranslator } from '@jupyterlab/translation';
import { Signal } from '@lumino/signaling';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import type { IJobView, IJobRow, IKernelStart } from '../src/api/types';
import type { State } from '../src/api/record';
import { isRemote, newestJob } from '../src/kernels/jobs';
import { KernelSharing } from '../src/kernels/sharing';
import { END_TIMEOUT, KernelMonitor, REPORT_DELAY, type SessionPart } from '../src/kernels/monitor';

type Listener = (rows: readonly IJobRow[]) => void;

const FAR = { kernel_provisioner: { provisioner_name: 'submarine-yarn', config: {} } };

function row(state: State, detail = '', more: Partial<IJobRow> = {}): IJobRow {
  const known = {
    job_id: 'kernel-far-1',
    name: 'kernel-far',
    notebook: 'work/a.ipynb',
    created: 1
  };
  return { ...known, state, detail, ...more } as IJobRow;
}

class Session {
  kernelDisplayName = 'Far away';
  kernelDisplayStatus = 'idle';
  prevKernelName = 'far';
  session: object | null = {};
  sessionChanged = new Signal<Session, void>(this);
  statusChanged = new Signal<Session, string>(this);
  specsManager = {
    specs: {
      kernelspecs: {
        far: { name: 'far', display_name: 'Far away', metadata: FAR },
        near: { name: 'near', display_name: 'Near', metadata: {} }
      }
    }
  };

  become(status: string): void {
    this.kernelDisplayStatus = status;
    this.statusChanged.emit(status);
  }

  vanish(): void {
    this.kernelDisplayStatus = 'unknown';
    this.session = null;
    this.sessionChanged.emit();
  }
}

let session: Session;
let said: string[];
let listeners: Set<Listener>;
/** Jobs that are looked at as if on display -> who hears of them. */
let looks: Map<string, (view: IJobView) => void>;
let documents: string[];
/** Those who hear of what the server starts. */
let preparing: Set<(starts: readonly IKernelStart[]) => void>;
let watch: KernelMonitor;

beforeEach(() => {
  vi.useFakeTimers();
  session = new Session();
  said = [];
  listeners = new Set();
  looks = new Map();
  documents = ['work/a.ipynb'];
  preparing = new Set();
  watch = new KernelMonitor(
    session as unknown as SessionPart,
    {
      jobs: listener => {
        const heard: Listener = rows => {
          listener(rows, rows.length, '');
        };
        listeners.add(heard);
        return { isDisposed: false, dispose: () => listeners.delete(heard) };
      },
      job: (job, listener) => {
        looks.set(job, listener);
        return { isDisposed: false, dispose: () => looks.delete(job) };
      },
      starts: listener => {
        preparing.add(listener);
        return { isDisposed: false, dispose: () => preparing.delete(listener) };
      }
    },
    () => documents,
    {
      showWaiting: text => said.push(text),
      clear: () => said.push('done'),
      showLost: text => said.push(text),
      showDisconnected: text => said.push(text)
    },
    nullTranslator.load('')
  );
});

afterEach(() => {
  watch.dispose();
  expect(listeners.size + looks.size + preparing.size).toBe(0);
  vi.useRealTimers();
});

function news(...rows: IJobRow[]): void {
  [...listeners].forEach(listener => {
    listener(rows);
  });
}

it('says what a start waits for, until it is there', () => {
  session.become('starting');
  vi.advanceTimersByTime(REPORT_DELAY);
  news(row('PENDING', 'queue gpu has 0 of 4 GPUs free'), row('PENDING', 'x', { notebook: 'b' }));
  expect(said).toEqual(['The kernel far of a.ipynb is waiting: queue gpu has 0 of 4 GPUs free']);
  news(row('STARTING'));
  expect(said[1]).toContain('its container is being started');
  session.become('connecting');
  expect(said[2]).toBe('done');
  expect(listeners.size).toBe(0);
});

it('says who is before it, where the list does not know', () => {
  session.become('starting');
  vi.advanceTimersByTime(REPORT_DELAY);
  news(row('PENDING', 'queue gpu has 0 of 4 GPUs free for masters'));
  looks.get('kernel-far-1')?.({ pending: 'job x holds 4' } as IJobView);
  news(row('PENDING', 'queue gpu has 0 of 4 GPUs free for masters'));
  expect(said.slice(1)).toEqual(
    Array(2).fill('The kernel far of a.ipynb is waiting: job x holds 4')
  );
  session.become('idle');
  expect(looks.size).toBe(0);
});

it('says that a kernel is prepared while it has no job, and no more when that has ended', () => {
  session.become('starting');
  vi.advanceTimersByTime(REPORT_DELAY);
  news(row('SUCCEEDED', 'former', { job_id: 'former' }));
  expect(said[0]).toContain('The kernel far of a.ipynb is being prepared');
  news(row('PENDING', 'x'));
  news(row('CANCELLED', 'cancelled'));
  expect(said.slice(1)).toEqual(['The kernel far of a.ipynb is waiting: x', 'done']);
});

it('says how far the files of a kernel are that has no job yet', () => {
  const tell = (...starts: IKernelStart[]): void => {
    [...preparing].forEach(listener => {
      listener(starts);
    });
  };
  session.become('starting');
  vi.advanceTimersByTime(REPORT_DELAY);
  news();
  const other = { kernel: 'far', notebook: 'other.ipynb', words: 'Packing: 99 %' };
  tell(other, { ...other, notebook: 'work/a.ipynb', words: 'Packing: 34 % of 700 MB' });
  expect(said[0]).toContain('is being prepared. Its files are being uploaded');
  expect(said.at(-1)).toBe('The kernel far of a.ipynb is being prepared. Packing: 34 % of 700 MB');
  // What it was is not taken back because the list has news, or the server knows of no start.
  tell();
  news();
  expect(said.at(-1)).toContain('34 %');
  news(row('PENDING', 'x'));
  const told = said.length;
  tell({ kernel: 'far', notebook: 'work/a.ipynb', words: 'late' });
  expect(said.length).toBe(told);
  expect(said.at(-1)).toBe('The kernel far of a.ipynb is waiting: x');
});

it('says nothing of a start that is quick, nor of kernels of this machine', () => {
  session.become('starting');
  vi.advanceTimersByTime(REPORT_DELAY - 1);
  session.become('idle');
  vi.advanceTimersByTime(REPORT_DELAY);
  expect(listeners.size).toBe(0);
  session.kernelDisplayName = 'Near';
  session.become('starting');
  vi.advanceTimersByTime(REPORT_DELAY);
  session.prevKernelName = 'near';
  session.become('dead');
  expect(listeners.size).toBe(0);
  expect(said).toEqual(['done']);
});

it('says why a kernel is gone, once, when its job has ended', () => {
  session.become('dead');
  news(row('RUNNING'));
  news(row('FAILED', 'The node was lost.'));
  expect(said).toEqual(['The kernel far of a.ipynb has lost its container: The node was lost.']);
  vi.advanceTimersByTime(END_TIMEOUT);
  expect(said.length).toBe(1);
});

it.each([
  [
    'is dead',
    () => {
      session.become('dead');
    }
  ],
  [
    'is unknown to a server that was started anew',
    () => {
      session.vanish();
    }
  ]
])('offers a kernel that %s and still runs, until it is there again', (_, lose) => {
  lose();
  news(row('RUNNING'));
  vi.advanceTimersByTime(END_TIMEOUT - 1);
  news(row('RUNNING'));
  expect(said).toEqual([]);
  vi.advanceTimersByTime(1);
  expect(said[0]).toContain('still runs');
  session.become('idle');
  expect(said[1]).toBe('done');
  expect(listeners.size).toBe(0);
});

it('offers nothing that has ended meanwhile', () => {
  session.vanish();
  news(row('RUNNING'));
  vi.advanceTimersByTime(END_TIMEOUT);
  news(row('SUCCEEDED'));
  expect(said.slice(1)).toEqual(['done']);
});

it('says nothing of a kernel that was shut down', () => {
  session.become('terminating');
  session.vanish();
  session.become('unknown');
  expect(listeners.size).toBe(0);
  session.become('idle');
  session.vanish(); // from the list of running kernels, or another page
  news(row('RUNNING'));
  vi.advanceTimersByTime(END_TIMEOUT - 1);
  news(row('FINISHING'));
  vi.advanceTimersByTime(END_TIMEOUT);
  news(row('SUCCEEDED'));
  expect(said).toEqual(['done']);
});

it('is over when the kernel is another', () => {
  session.become('dead');
  session.become('idle');
  news(row('FAILED', 'x'));
  expect(said).toEqual(['done']);
});

it('knows the newest job of a kernelspec and notebook', () => {
  const rows = [
    row('FAILED', '', { created: 5, job_id: 'new' }),
    row('RUNNING', '', { created: 3, job_id: 'old' }),
    row('RUNNING', '', { created: 9, job_id: 'other', name: 'kernel-farther' })
  ];
  expect(newestJob(rows, 'far', ['b', 'work/a.ipynb'])?.job_id).toBe('new');
  expect(newestJob(rows, 'far', ['b.ipynb'])).toBeUndefined();
});

it.each([undefined, {}, { kernel_provisioner: 'submarine-yarn' }, { kernel_provisioner: null }])(
  'takes no other kernelspec for one in a container',
  metadata => {
    expect(isRemote(metadata)).toBe(false);
  }
);

/** A console's or notebook's part of a session, and what the server says of all of them. */
function sharing(path: string, name: string, kernel: object, models: object[]): KernelSharing {
  const part = { path, name, session: { kernel } };
  return new KernelSharing(
    part as never,
    () => models as never,
    local => local
  );
}

it('knows with whom a kernel was shared, also when it is gone', () => {
  const kernel = { id: 'k' };
  const models = [
    { path: 'work/console-1-x', name: 'Console 1', kernel },
    { path: 'work/a.ipynb', name: 'a.ipynb', kernel },
    { path: 'work/b.ipynb', name: 'b.ipynb', kernel: { id: 'l' } }
  ];
  const shared = sharing('work/console-1-x', 'Console 1', kernel, models);
  shared.update();
  models.length = 0;
  shared.update();
  expect(shared.documents([shared])).toEqual(['work/Console 1', 'work/a.ipynb']);
  kernel.id = 'another';
  shared.update();
  expect(shared.documents([shared])).toEqual(['work/Console 1']);
});

it('has one of all that share a kernel tell of it', () => {
  const kernel = { id: 'k' };
  const models = [{ path: 'a.ipynb', name: 'a.ipynb', kernel }];
  const notebook = sharing('a.ipynb', 'a.ipynb', kernel, models);
  const same = sharing('a.ipynb', 'a.ipynb', kernel, models);
  const other = sharing('console-1-x', 'Console 1', kernel, models);
  const all = [notebook, same, other];
  all.forEach(one => {
    one.update();
  });
  const told = all.map(one => one.documents(all));
  expect(told).toEqual([['a.ipynb'], [], ['Console 1']]);
  expect(other.documents([other])).toEqual(['Console 1', 'a.ipynb']);
});

it('is silent where another tells', () => {
  documents = [];
  session.become('starting');
  vi.advanceTimersByTime(REPORT_DELAY);
  news(row('PENDING', 'x'));
  session.become('dead');
  news(row('FAILED', 'x'));
  expect(said.filter(words => words !== 'done')).toEqual([]);
});
