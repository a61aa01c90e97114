/** What a card shows of a job besides its view: curves of what it measured, and its saved models. */

import type { IJobView, IModelVersion, ISeries } from '../api/job_types';
import type { ISubmarine, ISubscription } from '../tokens';

/** Points a curve; more cannot be seen in a small chart. */
const POINTS = 200;

export class Extras {
  /**
   * @param onChange - Called when there is something else to show.
   */
  constructor(
    private readonly submarine: ISubmarine,
    private readonly job: string,
    private readonly onChange: () => void
  ) {}

  series: readonly ISeries[] = [];
  models: readonly IModelVersion[] = [];

  /** Hear curves of what has run; once is enough. */
  listen(view: IJobView): void {
    const ran = view.record.tasks.some(task => task.started !== null);
    if (!this._metrics && ran) {
      this._metrics = this.submarine.channel.metrics(this.job, POINTS, series => {
        this.series = series;
        this.tell();
      });
    }
  }

  /** Hear no curves for now. */
  rest(): void {
    this._metrics?.dispose();
    this._metrics = null;
  }

  /** Ask for the models where a view says that there may be others than before. */
  look(before: IJobView | null, view: IJobView): void {
    if (!before || before.record.state !== view.record.state || saves(before) !== saves(view)) {
      void this.refreshModels();
    }
  }

  /** Ask again for what is not pushed: after a model was saved. */
  async refreshModels(): Promise<void> {
    try {
      this.models = await this.submarine.rest.models(this.job);
      this.tell();
    } catch (problem) {
      // The card has more to say than this; the next change of state asks again.
      console.warn('jupyter-submarine: the models of a job cannot be listed.', problem);
    }
  }

  dispose(): void {
    this._disposed = true;
    this.rest();
  }

  private tell(): void {
    if (!this._disposed) {
      this.onChange();
    }
  }

  private _metrics: ISubscription | null = null;
  private _disposed = false;
}

/** How many files of models the job has: when it changes, there is a new version. */
function saves(view: IJobView): number {
  return view.record.outputs.length;
}
