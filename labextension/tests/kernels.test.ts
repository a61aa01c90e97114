/** Notifications about a kernel in a container: while it starts and after it is lost. */

import { nullTranslator } from '@jupyterlab/translation';
import { Signal } from '@lumino/signaling';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import type { IJobView, IJobRow, IKernelStart } from '../src/api/types';
import type { State } from '../src/api/record';
import { isRemote, newestJob } from '../src/kernels/jobs';
import { KernelSharing } from '../src/kernels/sharing';
import { END_TIMEOUT, KernelMonitor, REPORT_DELAY, type SessionPart } from '../src/kernels/monitor';

type RowsListener = (rows: readonly IJobRow[]) => void;

const REMOTE_METADATA = { kernel_provisioner: { provisioner_name: 'submarine-yarn', config: {} } };

function row(state: State, detail = '', changes: Partial<IJobRow> = {}): IJobRow {
  const defaults = {
    job_id: 'kernel-far-1',
    name: 'kernel-far',
    notebook: 'work/a.ipynb',
    created: 1
  };
  return { ...defaults, state, detail, ...changes } as IJobRow;
}

class FakeSession {
  kernelDisplayName = 'Far away';
  kernelDisplayStatus = 'idle';
  prevKernelName = 'far';
  session: object | null = {};
  sessionChanged = new Signal<FakeSession, void>(this);
  statusChanged = new Signal<FakeSession, string>(this);
  specsManager = {
    specs: {
      kernelspecs: {
        far: { name: 'far', display_name: 'Far away', metadata: REMOTE_METADATA },
        near: { name: 'near', display_name: 'Near', metadata: {} }
      }
    }
  };

  setStatus(status: string): void {
    this.kernelDisplayStatus = status;
    this.statusChanged.emit(status);
  }

  loseSession(): void {
    this.kernelDisplayStatus = 'unknown';
    this.session = null;
    this.sessionChanged.emit();
  }
}

let session: FakeSession;
let messages: string[];
let rowsListeners: Set<RowsListener>;
/** Job id -> listener of its subscription. */
let jobListeners: Map<string, (view: IJobView) => void>;
let documents: string[];
/** Listeners for kernel starts. */
let startListeners: Set<(starts: readonly IKernelStart[]) => void>;
let monitor: KernelMonitor;

beforeEach(() => {
  vi.useFakeTimers();
  session = new FakeSession();
  messages = [];
  rowsListeners = new Set();
  jobListeners = new Map();
  documents = ['work/a.ipynb'];
  startListeners = new Set();
  monitor = new KernelMonitor(
    session as unknown as SessionPart,
    {
      jobs: listener => {
        const rowsListener: RowsListener = rows => {
          listener(rows, rows.length, '');
        };
        rowsListeners.add(rowsListener);
        return { isDisposed: false, dispose: () => rowsListeners.delete(rowsListener) };
      },
      job: (job, listener) => {
        jobListeners.set(job, listener);
        return { isDisposed: false, dispose: () => jobListeners.delete(job) };
      },
      starts: listener => {
        startListeners.add(listener);
        return { isDisposed: false, dispose: () => startListeners.delete(listener) };
      }
    },
    () => documents,
    {
      showWaiting: text => messages.push(text),
      clear: () => messages.push('done'),
      showLost: text => messages.push(text),
      showDisconnected: text => messages.push(text)
    },
    nullTranslator.load('')
  );
});

afterEach(() => {
  monitor.dispose();
  expect(rowsListeners.size + jobListeners.size + startListeners.size).toBe(0);
  vi.useRealTimers();
});

function sendRows(...rows: IJobRow[]): void {
  [...rowsListeners].forEach(listener => {
    listener(rows);
  });
}

it('reports why a start waits until the kernel is connected', () => {
  session.setStatus('starting');
  vi.advanceTimersByTime(REPORT_DELAY);
  sendRows(
    row('PENDING', 'queue gpu has 0 of 4 GPUs free'),
    row('PENDING', 'x', { notebook: 'b' })
  );
  expect(messages).toEqual([
    'The kernel far of a.ipynb is waiting: queue gpu has 0 of 4 GPUs free'
  ]);
  sendRows(row('STARTING'));
  expect(messages[1]).toContain('its container is being started');
  session.setStatus('connecting');
  expect(messages[2]).toBe('done');
  expect(rowsListeners.size).toBe(0);
});

it('prefers the reason of the job view to that of the job list', () => {
  session.setStatus('starting');
  vi.advanceTimersByTime(REPORT_DELAY);
  sendRows(row('PENDING', 'queue gpu has 0 of 4 GPUs free for masters'));
  jobListeners.get('kernel-far-1')?.({ pending: 'job x holds 4' } as IJobView);
  sendRows(row('PENDING', 'queue gpu has 0 of 4 GPUs free for masters'));
  expect(messages.slice(1)).toEqual(
    Array(2).fill('The kernel far of a.ipynb is waiting: job x holds 4')
  );
  session.setStatus('idle');
  expect(jobListeners.size).toBe(0);
});

it('reports the preparation before the job is listed and clears the message at its end', () => {
  session.setStatus('starting');
  vi.advanceTimersByTime(REPORT_DELAY);
  sendRows(row('SUCCEEDED', 'former', { job_id: 'former' }));
  expect(messages[0]).toContain('The kernel far of a.ipynb is being prepared');
  sendRows(row('PENDING', 'x'));
  sendRows(row('CANCELLED', 'cancelled'));
  expect(messages.slice(1)).toEqual(['The kernel far of a.ipynb is waiting: x', 'done']);
});

it('reports the upload progress before the job is listed', () => {
  const sendStarts = (...starts: IKernelStart[]): void => {
    [...startListeners].forEach(listener => {
      listener(starts);
    });
  };
  session.setStatus('starting');
  vi.advanceTimersByTime(REPORT_DELAY);
  sendRows();
  const other = { kernel: 'far', notebook: 'other.ipynb', words: 'Packing: 99 %' };
  sendStarts(other, { ...other, notebook: 'work/a.ipynb', words: 'Packing: 34 % of 700 MB' });
  expect(messages[0]).toContain('is being prepared. Its files are being uploaded');
  expect(messages.at(-1)).toBe(
    'The kernel far of a.ipynb is being prepared. Packing: 34 % of 700 MB'
  );
  // The last progress stays when the list is updated and when the server reports no start.
  sendStarts();
  sendRows();
  expect(messages.at(-1)).toContain('34 %');
  sendRows(row('PENDING', 'x'));
  const count = messages.length;
  sendStarts({ kernel: 'far', notebook: 'work/a.ipynb', words: 'late' });
  expect(messages.length).toBe(count);
  expect(messages.at(-1)).toBe('The kernel far of a.ipynb is waiting: x');
});

it('reports neither fast starts nor local kernels', () => {
  session.setStatus('starting');
  vi.advanceTimersByTime(REPORT_DELAY - 1);
  session.setStatus('idle');
  vi.advanceTimersByTime(REPORT_DELAY);
  expect(rowsListeners.size).toBe(0);
  session.kernelDisplayName = 'Near';
  session.setStatus('starting');
  vi.advanceTimersByTime(REPORT_DELAY);
  session.prevKernelName = 'near';
  session.setStatus('dead');
  expect(rowsListeners.size).toBe(0);
  expect(messages).toEqual(['done']);
});

it('reports why a kernel is lost once, when its job has ended', () => {
  session.setStatus('dead');
  sendRows(row('RUNNING'));
  sendRows(row('FAILED', 'The node was lost.'));
  expect(messages).toEqual([
    'The kernel far of a.ipynb has lost its container: The node was lost.'
  ]);
  vi.advanceTimersByTime(END_TIMEOUT);
  expect(messages.length).toBe(1);
});

it.each([
  [
    'is dead',
    () => {
      session.setStatus('dead');
    }
  ],
  [
    'is unknown to a restarted server',
    () => {
      session.loseSession();
    }
  ]
])('reports a kernel that %s and still runs until it is connected', (_, loseKernel) => {
  loseKernel();
  sendRows(row('RUNNING'));
  vi.advanceTimersByTime(END_TIMEOUT - 1);
  sendRows(row('RUNNING'));
  expect(messages).toEqual([]);
  vi.advanceTimersByTime(1);
  expect(messages[0]).toContain('still runs');
  session.setStatus('idle');
  expect(messages[1]).toBe('done');
  expect(rowsListeners.size).toBe(0);
});

it('clears the message about a disconnected kernel when its job has ended', () => {
  session.loseSession();
  sendRows(row('RUNNING'));
  vi.advanceTimersByTime(END_TIMEOUT);
  sendRows(row('SUCCEEDED'));
  expect(messages.slice(1)).toEqual(['done']);
});

it('reports nothing about a kernel that was shut down', () => {
  session.setStatus('terminating');
  session.loseSession();
  session.setStatus('unknown');
  expect(rowsListeners.size).toBe(0);
  session.setStatus('idle');
  session.loseSession(); // Shut down from the list of running kernels or from another page.
  sendRows(row('RUNNING'));
  vi.advanceTimersByTime(END_TIMEOUT - 1);
  sendRows(row('FINISHING'));
  vi.advanceTimersByTime(END_TIMEOUT);
  sendRows(row('SUCCEEDED'));
  expect(messages).toEqual(['done']);
});

it('stops monitoring a lost kernel when a kernel runs again', () => {
  session.setStatus('dead');
  session.setStatus('idle');
  sendRows(row('FAILED', 'x'));
  expect(messages).toEqual(['done']);
});

it('finds the newest job of a kernelspec and notebook', () => {
  const rows = [
    row('FAILED', '', { created: 5, job_id: 'new' }),
    row('RUNNING', '', { created: 3, job_id: 'old' }),
    row('RUNNING', '', { created: 9, job_id: 'other', name: 'kernel-farther' })
  ];
  expect(newestJob(rows, 'far', ['b', 'work/a.ipynb'])?.job_id).toBe('new');
  expect(newestJob(rows, 'far', ['b.ipynb'])).toBeUndefined();
});

it.each([undefined, {}, { kernel_provisioner: 'submarine-yarn' }, { kernel_provisioner: null }])(
  'a kernelspec with the metadata %j is not remote',
  metadata => {
    expect(isRemote(metadata)).toBe(false);
  }
);

/** The sharing state of one panel; `models` are the sessions that the server reports. */
function sharing(path: string, name: string, kernel: object, models: object[]): KernelSharing {
  const part = { path, name, session: { kernel } };
  return new KernelSharing(
    part as never,
    () => models as never,
    local => local
  );
}

it('lists the documents that share a kernel, also after the kernel is gone', () => {
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

it('reports a shared kernel once per document', () => {
  const kernel = { id: 'k' };
  const models = [{ path: 'a.ipynb', name: 'a.ipynb', kernel }];
  const notebook = sharing('a.ipynb', 'a.ipynb', kernel, models);
  const same = sharing('a.ipynb', 'a.ipynb', kernel, models);
  const other = sharing('console-1-x', 'Console 1', kernel, models);
  const all = [notebook, same, other];
  all.forEach(one => {
    one.update();
  });
  const documentLists = all.map(one => one.documents(all));
  expect(documentLists).toEqual([['a.ipynb'], [], ['Console 1']]);
  expect(other.documents([other])).toEqual(['Console 1', 'a.ipynb']);
});

it('reports nothing if another panel reports the kernel', () => {
  documents = [];
  session.setStatus('starting');
  vi.advanceTimersByTime(REPORT_DELAY);
  sendRows(row('PENDING', 'x'));
  session.setStatus('dead');
  sendRows(row('FAILED', 'x'));
  expect(messages.filter(text => text !== 'done')).toEqual([]);
});
