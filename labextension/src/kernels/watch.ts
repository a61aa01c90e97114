/**
 * Monitor the kernel of a notebook or console: why it waits while it starts, and why it is lost.
 */

import type { ISessionContext } from '@jupyterlab/apputils';
import { PathExt } from '@jupyterlab/coreutils';
import type { TranslationBundle } from '@jupyterlab/translation';
import type { IDisposable } from '@lumino/disposable';
import { ENDED } from '../api/job_types';
import type { IJobRow } from '../api/list_types';
import type { IChannel, ISubscription } from '../tokens';
import { isRemote, isWaiting, newestOf } from './jobs';
import type { IVoice } from './voice';

/** Delay before a starting kernel is reported, in milliseconds. */
export const QUICK = 1500;
/** Milliseconds to wait for the end of a lost kernel's job before it is reported as running. */
export const GRACE = 10_000;

/** Maximum length of a document name; a notification shows 140 characters. */
const LONGEST = 28;

export type SessionPart = Pick<
  ISessionContext,
  | 'kernelDisplayName'
  | 'kernelDisplayStatus'
  | 'prevKernelName'
  | 'session'
  | 'sessionChanged'
  | 'statusChanged'
> & { specsManager: Pick<ISessionContext['specsManager'], 'specs'> };

export class KernelWatch implements IDisposable {
  constructor(
    private readonly _session: SessionPart,
    private readonly _channel: Pick<IChannel, 'jobs' | 'job' | 'starts'>,
    /**
     * The documents of the kernel's job, the own document first; empty if another panel reports it.
     */
    private readonly _documents: () => readonly string[],
    private readonly _voice: IVoice,
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
    const kernel = this._kernel();
    this._leaving = status === 'terminating' || (this._leaving && status === 'unknown');
    if (status === 'dead') {
      this._lose();
    } else if (kernel !== undefined && (status === 'starting' || status === 'initializing')) {
      if (this._phase !== 'starting') {
        this._begin('starting', kernel);
      }
    } else if (this._phase === 'starting' || status === 'idle' || status === 'busy') {
      this._stop();
    }
  };

  /** A restarted server has no session and does not report a dead kernel. */
  private readonly _onSession = (): void => {
    if (this._session.session === null && !this._leaving) {
      this._lose();
    }
  };

  private _lose(): void {
    const lost = this._remote(this._session.prevKernelName);
    if (lost !== undefined && this._phase !== 'gone') {
      this._begin('gone', lost);
    }
  }

  /** The selected kernelspec if its kernels run in containers. */
  private _kernel(): string | undefined {
    const shown = this._session.kernelDisplayName;
    const specs = this._session.specsManager.specs?.kernelspecs ?? {};
    const found = Object.values(specs).find(spec => spec?.display_name === shown);
    return found && this._remote(found.name);
  }

  private _remote(name: string): string | undefined {
    const spec = this._session.specsManager.specs?.kernelspecs[name];
    return isRemote(spec?.metadata) ? name : undefined;
  }

  private _begin(phase: 'starting' | 'gone', kernel: string): void {
    this._stop();
    this._phase = phase;
    this._kernelName = kernel;
    this._since = Date.now();
    const document = PathExt.basename(this._documents()[0] ?? '');
    const short = document.length > LONGEST ? `${document.slice(0, LONGEST - 1)}…` : document;
    this._title = this._trans.__('%1 of %2', kernel, short);
    const follow = (): void => {
      this._jobs = this._channel.jobs(rows => {
        const documents = this._documents();
        const row = newestOf(rows, kernel, documents);
        if (this._phase === 'gone' && row) {
          this._tellEnd(row);
        } else if (this._phase === 'starting' && documents.length > 0) {
          this._tellStart(row);
        }
      });
    };
    if (phase === 'gone') {
      follow();
    } else {
      this._timer = window.setTimeout(follow, QUICK);
    }
  }

  /**
   * @param row - The newest job of the kernelspec. While the start is being prepared, it is an
   * older one.
   */
  private _tellStart(row: IJobRow | undefined): void {
    if (row && isWaiting(row)) {
      this._prepared();
      if (row.job_id !== this._waiting) {
        this._explain(row.job_id);
      }
      this._tellWait(this._why || row.detail, row.job_id);
    } else if (!row || (ENDED.has(row.state) && row.job_id !== this._waiting)) {
      this._tellPrepared();
    } else {
      this._prepared();
      this._voice.done();
    }
  }

  private _tellPrepared(): void {
    this._sayPrepared();
    this._starts ??= this._channel.starts(starts => {
      const documents = this._documents();
      const own = starts.find(
        ({ kernel, notebook }) => kernel === this._kernelName && documents.includes(notebook)
      );
      // Keep the last progress when the server has finished its part.
      if (own?.words) {
        this._far = own.words;
        this._sayPrepared();
      }
    });
  }

  private _sayPrepared(): void {
    const trans = this._trans;
    const far =
      this._far || trans.__('Its files are being uploaded (minutes for a new environment)');
    this._voice.waits(trans.__('The kernel %1 is being prepared. %2', this._title, far), '');
  }

  private _prepared(): void {
    this._starts?.dispose();
    this._starts = null;
    this._far = '';
  }

  private _tellWait(why: string, job: string): void {
    const { _trans: trans } = this;
    const reason = why || trans.__('its container is being started');
    this._voice.waits(trans.__('The kernel %1 is waiting: %2', this._title, reason), job);
  }

  /** Subscribe to the job: the server determines the reason for waiting only for displayed jobs. */
  private _explain(job: string): void {
    this._view?.dispose();
    this._waiting = job;
    this._why = '';
    this._view = this._channel.job(
      job,
      ({ pending }) => {
        this._why = pending;
        if (pending && this._phase === 'starting') {
          this._tellWait(pending, job);
        }
      },
      () => undefined // the list reports the state
    );
  }

  private _tellEnd(row: IJobRow): void {
    const { _trans: trans } = this;
    window.clearTimeout(this._timer);
    if (row.state === 'SUCCEEDED') {
      this._stop(); // shut down by a user
    } else if (ENDED.has(row.state)) {
      this._unsubscribe();
      const why = row.detail || row.state;
      this._voice.gone(
        trans.__('The kernel %1 has lost its container: %2', this._title, why),
        row.job_id
      );
    } else if (row.state === 'RUNNING') {
      const left = Math.max(0, this._since + GRACE - Date.now());
      this._timer = window.setTimeout(() => {
        const words = trans.__(
          'The kernel %1 still runs in its container, but the server has lost it.',
          this._title
        );
        this._voice.lives(words, row.job_id);
      }, left);
    }
  }

  private _stop(): void {
    this._unsubscribe();
    if (this._phase !== 'quiet') {
      this._voice.done();
    }
    this._phase = 'quiet';
  }

  private _unsubscribe(): void {
    window.clearTimeout(this._timer);
    this._timer = 0;
    this._prepared();
    this._jobs?.dispose();
    this._view?.dispose();
    this._jobs = this._view = null;
    this._waiting = this._why = '';
  }

  private _phase: 'quiet' | 'starting' | 'gone' = 'quiet';
  private _jobs: ISubscription | null = null;
  private _view: ISubscription | null = null;
  /** Progress before submission, which only the starting server knows. */
  private _starts: ISubscription | null = null;
  /** Latest progress before submission. */
  private _far = '';
  private _kernelName = '';
  private _title = '';
  /** The waiting job of this start and its reason; empty before it is listed. */
  private _waiting = '';
  private _why = '';
  private _timer = 0;
  private _since = 0;
  private _leaving = false;
  private _disposed = false;
}
