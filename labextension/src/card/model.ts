/**
 * What one card shows: the snapshot of its output first, then the job itself by its id.
 *
 * Listens to the channel only while the card can be seen. Knows no DOM.
 */

import type { TranslationBundle } from '@jupyterlab/translation';
import type { IDisposable } from '@lumino/disposable';
import { type ISignal, Signal } from '@lumino/signaling';
import {
  ENDED,
  type IJobView,
  type IModelVersion,
  type ISeries,
  type ITask
} from '../api/job_types';
import type { ISubmarine, ISubscription } from '../tokens';
import type { ISnapshot } from './snapshot';

/** Points a curve; more cannot be seen in a small chart. */
const POINTS = 200;
/** A card that was only scrolled past, or switched away from for a moment, stays subscribed. */
const LINGER = 2000;
/** Tasks that are asked for at a time, and at most: a job has no more. */
const TASKS = 200;
const MOST_TASKS = 4096;

/** `asking`: no answer yet. `away`: what is shown is old, `problem` says why. */
export type Standing = 'asking' | 'live' | 'away';

export class CardModel implements IDisposable {
  /**
   * @param submarine - Null where the front end has no way to the server.
   * @param jobId - A job id, checked by the caller.
   * @param snapshot - Null in a tab, where nothing is known before the server answers.
   */
  constructor(
    private readonly submarine: ISubmarine | null,
    private readonly trans: TranslationBundle,
    readonly jobId: string,
    snapshot: ISnapshot | null
  ) {
    this._snapshot = snapshot;
    submarine?.channel.connectedChanged.connect(this.onConnected);
    if (!submarine) {
      this.away(trans.__('The Submarine extension of this page is switched off.'));
    }
  }

  get changed(): ISignal<this, void> {
    return this._changed;
  }

  /** The job as it is known best; null: nothing is known. */
  get view(): IJobView | null {
    return this._live ?? this._snapshot?.view ?? null;
  }

  /** Whether `view` is the server's word (perhaps an old one), not the notebook's. */
  get fromServer(): boolean {
    return this._live !== null;
  }

  /** When what is shown was true; null: unknown. */
  get time(): number | null {
    return this._live ? this._heard : (this._snapshot?.time ?? null);
  }

  /** What the cell returned, from the output. */
  get result(): Readonly<Record<string, string>> {
    return this._snapshot?.result ?? {};
  }

  get standing(): Standing {
    return this._standing;
  }

  get problem(): string {
    return this._problem;
  }

  get series(): readonly ISeries[] {
    return this._series;
  }

  get models(): readonly IModelVersion[] {
    return this._models;
  }

  /** All tasks that are known: those of the view, and those that were asked for besides. */
  get tasks(): readonly ITask[] {
    const { view } = this;
    if (!view || !this._more.size) {
      return view?.record.tasks ?? [];
    }
    const news = new Map(view.record.tasks.map(task => [task.task, task]));
    return [...new Map([...this._more, ...news]).values()];
  }

  get visible(): boolean {
    return this._visible;
  }

  get isDisposed(): boolean {
    return this._disposed;
  }

  /** A newer output of the same job, from the kernel. */
  setSnapshot(snapshot: ISnapshot): void {
    if (snapshot.jobId === this.jobId) {
      this._snapshot = snapshot;
      this._changed.emit();
    }
  }

  /** Whether a person can see the card; the channel is listened to only then. */
  setVisible(visible: boolean): void {
    if (this._disposed || visible === this._visible) {
      return;
    }
    this._visible = visible;
    clearTimeout(this._lingering);
    if (visible) {
      this.subscribe();
    } else {
      this._lingering = setTimeout(() => {
        this.unsubscribe();
      }, LINGER);
    }
    this._changed.emit();
  }

  /** Ask for the tasks that the view leaves out because there are so many. */
  async loadTasks(): Promise<void> {
    if (!this.submarine || !this._live) {
      return;
    }
    const found = new Map<string, ITask>();
    for (let offset = 0; offset < MOST_TASKS && !this._disposed; offset += TASKS) {
      const { tasks, total } = await this.submarine.rest.tasks(this.jobId, offset, TASKS);
      for (const task of tasks) {
        found.set(task.task, task);
      }
      if (!tasks.length || offset + TASKS >= total) {
        break;
      }
    }
    this._more = found;
    this._changed.emit();
  }

  /** Ask again for what is not pushed: after a model was saved. */
  async refreshModels(): Promise<void> {
    if (!this.submarine || !this._live) {
      return;
    }
    try {
      const models = await this.submarine.rest.models(this.jobId);
      if (!this._disposed) {
        this._models = models;
        this._changed.emit();
      }
    } catch (problem) {
      // The card has more to say than this; the next change of state asks again.
      console.warn('jupyter-submarine: the models of a job cannot be listed.', problem);
    }
  }

  dispose(): void {
    if (!this._disposed) {
      this._disposed = true;
      clearTimeout(this._lingering);
      this.submarine?.channel.connectedChanged.disconnect(this.onConnected);
      this.unsubscribe();
      Signal.clearData(this);
    }
  }

  private subscribe(): void {
    if (!this.submarine || this._job) {
      return;
    }
    this._job = this.submarine.channel.job(
      this.jobId,
      view => {
        this.take(view);
      },
      problem => {
        this.away(problem);
      }
    );
    void this.submarine.ready.then(({ available, problem }) => {
      if (!available && !this._disposed && this._standing !== 'live') {
        this.away(problem);
      }
    });
    this.listenToMetrics();
  }

  private unsubscribe(): void {
    this._job?.dispose();
    this._metrics?.dispose();
    this._job = this._metrics = null;
  }

  private take(view: IJobView): void {
    // The channel is shared: whatever comes here must be about this job.
    if (this._disposed || view.record.job_id !== this.jobId) {
      return;
    }
    const before = this._live;
    this._live = view;
    this._heard = Date.now() / 1000;
    this._standing = 'live';
    this._problem = '';
    this._changed.emit();
    this.listenToMetrics();
    if (!before || before.record.state !== view.record.state || saves(before) !== saves(view)) {
      void this.refreshModels();
    }
  }

  /** Curves only of what has run. */
  private listenToMetrics(): void {
    const ran = this._live?.record.tasks.some(task => task.started !== null) ?? false;
    if (this.submarine && this._job && !this._metrics && ran) {
      this._metrics = this.submarine.channel.metrics(this.jobId, POINTS, series => {
        if (!this._disposed) {
          this._series = series;
          this._changed.emit();
        }
      });
    }
  }

  private readonly onConnected = (): void => {
    const ended = this._live ? ENDED.has(this._live.record.state) : false;
    if (this.submarine?.channel.connected) {
      this._problem = '';
      this._standing = this._live ? 'live' : 'asking';
      this._changed.emit();
    } else if (!ended && this._standing === 'live') {
      this.away(this.trans.__('The connection to the server is broken; it is being tried again.'));
    }
  };

  private away(problem: string): void {
    if (!this._disposed) {
      this._standing = 'away';
      this._problem = problem;
      this._changed.emit();
    }
  }

  private readonly _changed = new Signal<this, void>(this);
  private _snapshot: ISnapshot | null;
  private _live: IJobView | null = null;
  private _heard: number | null = null;
  private _series: readonly ISeries[] = [];
  private _more: ReadonlyMap<string, ITask> = new Map<string, ITask>();
  private _models: readonly IModelVersion[] = [];
  private _standing: Standing = 'asking';
  private _problem = '';
  private _visible = false;
  private _disposed = false;
  private _job: ISubscription | null = null;
  private _metrics: ISubscription | null = null;
  private _lingering: ReturnType<typeof setTimeout> | undefined;
}

/** How many files of models the job has: when it changes, there is a new version. */
function saves(view: IJobView): number {
  return view.record.outputs.length;
}
