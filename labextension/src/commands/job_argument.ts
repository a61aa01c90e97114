/** The job of a command: named by its arguments or selected by the user. */

import { InputDialog } from '@jupyterlab/apputils';
import type { TranslationBundle } from '@jupyterlab/translation';
import type { ReadonlyPartialJSONObject } from '@lumino/coreutils';
import type { IJobRow } from '../api/types';
import { ENDED } from '../api/record';
import { isJobId } from '../card/snapshot';
import type { IRest } from '../tokens';

/** Number of jobs in the selection. */
const MAX_CHOICES = 50;

/** The job id in `args`; throws if there is none. */
export function jobArgument(args: ReadonlyPartialJSONObject, trans: TranslationBundle): string {
  const job = args['job'];
  if (!isJobId(job)) {
    throw new Error(trans.__('%1 is not a job id.', JSON.stringify(job ?? '').slice(0, 80)));
  }
  return job;
}

/**
 * Let the user select one of the latest jobs; undefined if the dialog is closed.
 *
 * @param title - Title and button label. A button "Cancel" would be ambiguous here.
 */
export async function chooseJob(
  rest: IRest,
  title: string,
  kind: 'any' | 'active' | 'ended',
  trans: TranslationBundle
): Promise<string | undefined> {
  const { jobs } = await rest.jobs({ limit: MAX_CHOICES });
  const matching = jobs.filter(
    row => kind === 'any' || ENDED.has(row.state) === (kind === 'ended')
  );
  if (matching.length === 0) {
    throw new Error(
      kind === 'active' ? trans.__('No job is running.') : trans.__('There are no such jobs yet.')
    );
  }
  const items = matching.map(describe);
  const { button, value } = await InputDialog.getItem({
    title,
    items,
    label: trans.__('Job'),
    okLabel: title,
    cancelLabel: trans.__('Close')
  });
  return button.accept && value ? matching[items.indexOf(value)]?.job_id : undefined;
}

function describe({ job_id, state }: IJobRow): string {
  return `${job_id}  ${state}`;
}
