/**
 * Monitor the kernel of a notebook or console: why it waits while it starts, and why it is lost.
 */

import type { ISessionContext } from '@jupyterlab/apputils';
import { PathExt } from '@jupyterlab/coreutils';
import type { TranslationBundle } from '@jupyterlab/translation';
import type { IDisposable } from '@lumino/disposable';
import { ENDED } from '../api/record';
import type { IJobRow } from '../api/types';
import type { IChannel, ISubscription } from '../tokens';
import { isRemote, isWaiting, newestJob } from './jobs';
import type { INotifier } from './notifications';

/** Delay before a starting kernel is reported, in milliseconds. */
export const REPORT_DELAY = 1500;
/** Milliseconds to wait for the end of a lost kernel's job before it is reported as running. */
export const END_TIMEOUT = 10_000;

/** Maximum length of a document name; a notification shows 140 characters. */
const MAX_NAME = 28;

export type SessionPart = Pick<
  ISessionContext,
  | 'kernelDisplayName'
  | 'kernelDisplayStatus'
  | 'prevKernelName'
  | 'session'
  | 'sessionChanged'
  | 'statusChanged'
> & { specsManager: Pick<ISessionContext['specsManager'], 'specs'> };

export class KernelMonitor implements IDisposable {
  constructor(
    private readonly _session: SessionPart,
    private readonly _channel: Pick<IChannel, 'jobs' | 'job' | 'starts'>,
    /**
     * Documents of the kernel's job, that of this panel first; empty if another panel reports it.
     */
    private readonly _documents: () => readonly string[],
    private readonly _notifier: INotifier,
    private readonly _trans: TranslationBundle
  ) {
    _session.statusChanged.connect(this._onStatus);
    _session.sessionChanged.connect(this._onSession);
    this._onStatus();
  }

  get isDisposed(): boolean {
    return this._disposed;
  }

  dispose(): void {
    this._disposed = true;
    this._session.statusChanged.disconnect(this._onStatus);
    this._session.sessionChanged.disconnect(this._onSession);
    this._stop();
  }

  private readonly _onStatus = (): void => {
    const status = this._session.kernelDisplayStatus;
    const kernel = this._selectedKernel();
    this._leaving = status === 'terminating' || (this._leaving && status === 'unknown');
    if (status === 'dead') {
      this._onLost();
    } else if (kernel !== undefined && (status === 'starting' || status === 'initializing')) {
      if (this._phase !== 'starting') {
        this._start('starting', kernel);
      }
    } else if (this._phase === 'starting' || status === 'idle' || status === 'busy') {
      this._stop();
    }
  };

  /** A restarted server has no session and does not report a dead kernel. */
  private readonly _onSession = (): void => {
    if (this._session.session === null && !this._leaving) {
      this._onLost();
    }
  };

  private _onLost(): void {
    const lost = this._remoteKernel(this._session.prevKernelName);
    if (lost !== undefined && this._phase !== 'lost') {
      this._start('lost', lost);
    }
  }

  /** The selected kernelspec if its kernels run in containers. */
  private _selectedKernel(): string | undefined {
    const shown = this._session.kernelDisplayName;
    const specs = this._session.specsManager.specs?.kernelspecs ?? {};
    const found = Object.values(specs).find(spec => spec?.display_name === shown);
    return found && this._remoteKernel(found.name);
  }

  private _remoteKernel(name: string): string | undefined {
    const spec = this._session.specsManager.specs?.kernelspecs[name];
    return isRemote(spec?.metadata) ? name : undefined;
  }

  private _start(phase: 'starting' | 'lost', kernel: string): void {
    this._stop();
    this._phase = phase;
    this._kernelName = kernel;
    this._since = Date.now();
    const document = PathExt.basename(this._documents()[0] ?? '');
    const short = document.length > MAX_NAME ? `${document.slice(0, MAX_NAME - 1)}…` : document;
    this._title = this._trans.__('%1 of %2', kernel, short);
    const follow = (): void => {
      this._jobs = this._channel.jobs(rows => {
        const documents = this._documents();
        const row = newestJob(rows, kernel, documents);
        if (this._phase === 'lost' && row) {
          this._reportEnd(row);
        } else if (this._phase === 'starting' && documents.length > 0) {
          this._reportStart(row);
        }
      });
    };
    if (phase === 'lost') {
      follow();
    } else {
      this._timer = window.setTimeout(follow, REPORT_DELAY);
    }
  }

  /**
   * @param row - The newest job of the kernelspec. While the start is being prepared, it is an
   * older one.
   */
  private _reportStart(row: IJobRow | undefined): void {
    if (row && isWaiting(row)) {
      this._endPreparation();
      if (row.job_id !== this._waiting) {
        this._watchJob(row.job_id);
      }
      this._reportWaiting(this._reason || row.detail, row.job_id);
    } else if (!row || (ENDED.has(row.state) && row.job_id !== this._waiting)) {
      this._reportPreparation();
    } else {
      this._endPreparation();
      this._notifier.clear();
    }
  }

  private _reportPreparation(): void {
    this._showPreparation();
    this._starts ??= this._channel.starts(starts => {
      const documents = this._documents();
      const own = starts.find(
        ({ kernel, notebook }) => kernel === this._kernelName && documents.includes(notebook)
      );
      // Keep the last progress when the server reports none.
      if (own?.words) {
        this._progress = own.words;
        this._showPreparation();
      }
    });
  }

  private _showPreparation(): void {
    const trans = this._trans;
    const progress =
      this._progress || trans.__('Its files are being uploaded (minutes for a new environment)');
    this._notifier.showWaiting(
      trans.__('The kernel %1 is being prepared. %2', this._title, progress),
      ''
    );
  }

  private _endPreparation(): void {
    this._starts?.dispose();
    this._starts = null;
    this._progress = '';
  }

  private _reportWaiting(why: string, job: string): void {
    const { _trans: trans } = this;
    const reason = why || trans.__('its container is being started');
    this._notifier.showWaiting(trans.__('The kernel %1 is waiting: %2', this._title, reason), job);
  }

  /** Subscribe to the job: the server determines the reason for waiting only for displayed jobs. */
  private _watchJob(job: string): void {
    this._view?.dispose();
    this._waiting = job;
    this._reason = '';
    this._view = this._channel.job(
      job,
      ({ pending }) => {
        this._reason = pending;
        if (pending && this._phase === 'starting') {
          this._reportWaiting(pending, job);
        }
      },
      () => undefined // The job list reports the state.
    );
  }

  private _reportEnd(row: IJobRow): void {
    const { _trans: trans } = this;
    window.clearTimeout(this._timer);
    if (row.state === 'SUCCEEDED') {
      this._stop(); // The kernel was shut down by a user.
    } else if (ENDED.has(row.state)) {
      this._unsubscribe();
      const why = row.detail || row.state;
      this._notifier.showLost(
        trans.__('The kernel %1 has lost its container: %2', this._title, why),
        row.job_id
      );
    } else if (row.state === 'RUNNING') {
      const left = Math.max(0, this._since + END_TIMEOUT - Date.now());
      this._timer = window.setTimeout(() => {
        const message = trans.__(
          'The kernel %1 still runs in its container, but the server has lost it.',
          this._title
        );
        this._notifier.showDisconnected(message, row.job_id);
      }, left);
    }
  }

  private _stop(): void {
    this._unsubscribe();
    if (this._phase !== 'idle') {
      this._notifier.clear();
    }
    this._phase = 'idle';
  }

  private _unsubscribe(): void {
    window.clearTimeout(this._timer);
    this._timer = 0;
    this._endPreparation();
    this._jobs?.dispose();
    this._view?.dispose();
    this._jobs = this._view = null;
    this._waiting = this._reason = '';
  }

  private _phase: 'idle' | 'starting' | 'lost' = 'idle';
  private _jobs: ISubscription | null = null;
  private _view: ISubscription | null = null;
  /** Kernel starts with the progress before submission, which is not in the job list. */
  private _starts: ISubscription | null = null;
  /** Latest progress before submission. */
  private _progress = '';
  private _kernelName = '';
  private _title = '';
  /** The waiting job of this start and its reason; empty before it is listed. */
  private _waiting = '';
  private _reason = '';
  private _timer = 0;
  private _since = 0;
  private _leaving = false;
  private _disposed = false;
}
