/**
 * The model of one card: the snapshot of its output first, then the job from the server.
 *
 * Subscribes to the channel only while the card is visible. No DOM.
 */

import type { TranslationBundle } from '@jupyterlab/translation';
import type { IDisposable } from '@lumino/disposable';
import { type ISignal, Signal } from '@lumino/signaling';
import { ENDED, type ITask } from '../api/record';
import { type IJobView, type ILineage, type IModelVersion, type ISeries } from '../api/types';
import type { ICancelRequest, ISubmarine, ISubscription, IRest } from '../tokens';
import { JobOutputs } from './details/job_outputs';
import type { ISnapshot } from './snapshot';

/** Delay before a card that scrolled out of view is unsubscribed, in milliseconds. */
const UNSUBSCRIBE_DELAY = 2000;

/** `loading`: no response yet. `stale`: the shown data is old, see `problem`. */
export type ConnectionState = 'loading' | 'live' | 'stale';

export class CardModel implements IDisposable {
  /**
   * @param submarine - Null if the API plugin is disabled.
   * @param jobId - A valid job id.
   * @param snapshot - Null in a tab, which starts without data.
   */
  constructor(
    private readonly submarine: ISubmarine | null,
    private readonly trans: TranslationBundle,
    readonly jobId: string,
    snapshot: ISnapshot | null
  ) {
    this._snapshot = snapshot;
    this._outputs = submarine
      ? new JobOutputs(submarine, jobId, () => {
          this._changed.emit();
        })
      : null;
    submarine?.channel.connectedChanged.connect(this.onConnected);
    submarine?.cancels.changed.connect(this.onCancel);
    if (!submarine) {
      this.setStale(trans.__('The Submarine extension is disabled on this page.'));
    }
  }

  get changed(): ISignal<this, void> {
    return this._changed;
  }

  /** The latest known view; null if there is none. */
  get view(): IJobView | null {
    return this._live ?? this._snapshot?.view ?? null;
  }

  /** Whether `view` comes from the server and not from the notebook. */
  get fromServer(): boolean {
    return this._live !== null;
  }

  /** Time of the shown data; null if unknown. */
  get time(): number | null {
    return this._live ? this._time : (this._snapshot?.time ?? null);
  }

  /** The pending cancel request of this page. */
  get cancelRequest(): ICancelRequest | null {
    return this.submarine?.cancels.get(this.jobId) ?? null;
  }

  /** Values that the cell returned, from the output. */
  get result(): Readonly<Record<string, string>> {
    return this._snapshot?.result ?? {};
  }

  get connection(): ConnectionState {
    return this._connection;
  }

  get problem(): string {
    return this._problem;
  }

  get series(): readonly ISeries[] {
    return this._outputs?.series ?? [];
  }

  get models(): readonly IModelVersion[] {
    return this._outputs?.models ?? [];
  }

  /** The lineage that was loaded last. */
  get lineage(): ILineage | null {
    return this._outputs?.lineage ?? null;
  }

  /** All loaded tasks: those of the view, and those that were loaded separately. */
  get tasks(): readonly ITask[] {
    const { view } = this;
    return mergeTasks(view?.record.tasks ?? [], this._loadedTasks);
  }

  get visible(): boolean {
    return this._visible;
  }

  get isDisposed(): boolean {
    return this._disposed;
  }

  /** A newer output of the same job from the kernel. */
  setSnapshot(snapshot: ISnapshot): void {
    if (snapshot.jobId === this.jobId) {
      this._snapshot = snapshot;
      this._changed.emit();
    }
  }

  /** Set whether the card is visible; the channel is used only while it is. */
  setVisible(visible: boolean): void {
    if (this._disposed || visible === this._visible) {
      return;
    }
    this._visible = visible;
    clearTimeout(this._unsubscribeTimer);
    if (visible) {
      this.subscribe();
    } else {
      this._unsubscribeTimer = setTimeout(() => {
        this.unsubscribe();
      }, UNSUBSCRIBE_DELAY);
    }
    this._changed.emit();
  }

  /** Load the tasks that the view omits. */
  async loadTasks(): Promise<void> {
    if (this.submarine && this._live) {
      this._loadedTasks = await loadAllTasks(this.submarine.rest, this.jobId, () => this._disposed);
      this._changed.emit();
    }
  }

  /** Reload the models after one was saved. */
  async refreshModels(): Promise<void> {
    if (this._live) {
      await this._outputs?.refreshModels();
    }
  }

  /** Load where a version comes from; empty: the final model. */
  async loadLineage(version: string): Promise<void> {
    await this._outputs?.loadLineage(version);
  }

  dispose(): void {
    if (!this._disposed) {
      this._disposed = true;
      clearTimeout(this._unsubscribeTimer);
      this.submarine?.channel.connectedChanged.disconnect(this.onConnected);
      this.submarine?.cancels.changed.disconnect(this.onCancel);
      this.unsubscribe();
      this._outputs?.dispose();
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
        this.setView(view);
      },
      problem => {
        this.setStale(problem);
      }
    );
    void this.submarine.ready.then(({ available, problem }) => {
      if (!available && !this._disposed && this._connection !== 'live') {
        this.setStale(problem);
      }
    });
    if (this._live) {
      this._outputs?.subscribe(this._live);
    }
  }

  private unsubscribe(): void {
    this._job?.dispose();
    this._outputs?.unsubscribe();
    this._job = null;
  }

  private setView(view: IJobView): void {
    // The channel is shared: ignore other jobs.
    if (this._disposed || view.record.job_id !== this.jobId) {
      return;
    }
    const before = this._live;
    this._live = view;
    this._time = Date.now() / 1000;
    this._connection = 'live';
    this._problem = '';
    if (ENDED.has(view.record.state)) {
      this.submarine?.cancels.remove(this.jobId);
    }
    this._changed.emit();
    if (this._job) {
      this._outputs?.subscribe(view);
    }
    this._outputs?.update(before, view);
  }

  private readonly onCancel = (_: unknown, job: string): void => {
    if (job === this.jobId) {
      this._changed.emit();
    }
  };

  private readonly onConnected = (): void => {
    const ended = this._live ? ENDED.has(this._live.record.state) : false;
    if (this.submarine?.channel.connected) {
      this._problem = '';
      this._connection = this._live ? 'live' : 'loading';
      this._changed.emit();
    } else if (!ended && this._connection === 'live') {
      this.setStale(this.trans.__('The connection to the server is lost. Reconnecting …'));
    }
  };

  private setStale(problem: string): void {
    if (!this._disposed) {
      this._connection = 'stale';
      this._problem = problem;
      this._changed.emit();
    }
  }

  private readonly _changed = new Signal<this, void>(this);
  private _snapshot: ISnapshot | null;
  private _live: IJobView | null = null;
  private _time: number | null = null;
  private _loadedTasks: ReadonlyMap<string, ITask> = new Map<string, ITask>();
  private _connection: ConnectionState = 'loading';
  private _problem = '';
  private _visible = false;
  private _disposed = false;
  private _job: ISubscription | null = null;
  private readonly _outputs: JobOutputs | null;
  private _unsubscribeTimer: ReturnType<typeof setTimeout> | undefined;
}

/** Tasks per request, and the largest number of tasks of a job. */
const PAGE = 200;
const MOST = 4096;

/** All tasks by name, page by page; stops early when `isCancelled` returns true. */
export async function loadAllTasks(
  rest: Pick<IRest, 'tasks'>,
  job: string,
  over: () => boolean
): Promise<ReadonlyMap<string, ITask>> {
  const found = new Map<string, ITask>();
  for (let offset = 0; offset < MOST && !over(); offset += PAGE) {
    const { tasks, total } = await rest.tasks(job, offset, PAGE);
    for (const task of tasks) {
      found.set(task.task, task);
    }
    if (!tasks.length || offset + PAGE >= total) {
      break;
    }
  }
  return found;
}

/** The tasks of a view, which are newer, merged with the other loaded tasks. */
export function mergeTasks(
  tasks: readonly ITask[],
  others: ReadonlyMap<string, ITask>
): readonly ITask[] {
  const news = tasks.map(task => [task.task, task] as const);
  return others.size === 0 ? tasks : [...new Map([...others, ...news]).values()];
}
