/** Metrics and saved models of a job, and where they come from, shown by its card. */

import type { IJobView, ILineage, IModelVersion, ISeries } from '../../api/types';
import type { ISubmarine, ISubscription } from '../../tokens';

/** Points per series; enough for a small chart. */
const POINTS = 200;

export class JobOutputs {
  /** @param onChange - Called when metrics or models have changed. */
  constructor(
    private readonly submarine: ISubmarine,
    private readonly job: string,
    private readonly onChange: () => void
  ) {}

  series: readonly ISeries[] = [];
  models: readonly IModelVersion[] = [];
  /** The lineage that was requested last; null before that. */
  lineage: ILineage | null = null;

  /** Subscribe to the metrics once a task has started. */
  subscribe(view: IJobView): void {
    const ran = view.record.tasks.some(task => task.started !== null);
    if (!this._metrics && ran) {
      this._metrics = this.submarine.channel.metrics(this.job, POINTS, series => {
        this.series = series;
        this.notify();
      });
    }
  }

  /** Unsubscribe from the metrics. */
  unsubscribe(): void {
    this._metrics?.dispose();
    this._metrics = null;
  }

  /** Reload the models if the view indicates a new version. */
  update(before: IJobView | null, view: IJobView): void {
    if (
      !before ||
      before.record.state !== view.record.state ||
      fileCount(before) !== fileCount(view)
    ) {
      void this.refreshModels();
    }
  }

  /** Reload the models. */
  async refreshModels(): Promise<void> {
    try {
      this.models = await this.submarine.rest.models(this.job);
      this.notify();
    } catch (problem) {
      // The next change of state retries.
      console.warn('jupyter-submarine: the models of a job cannot be listed.', problem);
    }
  }

  /** Load where a version comes from; empty: the final model. */
  async loadLineage(version: string): Promise<void> {
    this.lineage = await this.submarine.rest.lineage(this.job, version);
    this.notify();
  }

  dispose(): void {
    this._disposed = true;
    this.unsubscribe();
  }

  private notify(): void {
    if (!this._disposed) {
      this.onChange();
    }
  }

  private _metrics: ISubscription | null = null;
  private _disposed = false;
}

/** Number of saved files; it changes with each new version of a model. */
function fileCount(view: IJobView): number {
  return view.record.outputs.length;
}
