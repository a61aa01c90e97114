/** The status text below a log. */

import type { TranslationBundle } from '@jupyterlab/translation';
import { duration, size } from '../../format';

export interface IStatus {
  readonly phase: 'loading' | 'ready' | 'error';
  /** An error; can be set while the rest of the view works. */
  readonly message: string;
  /** The logs are complete. */
  readonly ended: boolean;
  /** Delay of the logs in seconds while there is no live connection. */
  readonly behind: number | null;
}

export interface ILogStatus {
  readonly status: IStatus;
  /** Whether the page is connected to the server. */
  readonly connected: boolean;
  /** Number of logs, and their bytes in this view. */
  readonly logs: number;
  readonly total: number;
  /** Bytes that the live stream skipped. */
  readonly skipped: number;
  readonly follow: boolean;
  /** Position of the first visible line, in bytes. */
  readonly position: number;
}

/** The status text, and whether a retry may help. */
export function statusText(
  trans: TranslationBundle,
  { status, connected, logs, total, skipped, follow, position }: ILogStatus
): { text: string; retry: boolean } {
  if (status.phase === 'error') {
    return { text: `${status.message} `, retry: true };
  }
  if (status.phase === 'loading') {
    return { text: trans.__('Reading the log…'), retry: false };
  }
  const parts = [
    total === 0 ? emptyText(trans, status, logs) : positionText(trans, total, follow, position),
    // In a fast log, the line that reports the gap disappears at once.
    skipped > 0 ? trans.__('skipped %1', size(skipped)) : '',
    status.message !== '' ? status.message : liveText(trans, status, connected, total)
  ];
  return { text: parts.filter(part => part !== '').join(' · '), retry: false };
}

function emptyText(trans: TranslationBundle, status: IStatus, logs: number): string {
  if (status.ended) {
    return trans.__('The job wrote nothing to this log.');
  }
  return logs === 0
    ? trans.__('No log yet. The log begins when the program starts.')
    : trans.__('No output yet.');
}

function positionText(
  trans: TranslationBundle,
  total: number,
  follow: boolean,
  position: number
): string {
  return follow ? size(total) : trans.__('At %1 of %2', size(position), size(total));
}

function liveText(
  trans: TranslationBundle,
  status: IStatus,
  connected: boolean,
  total: number
): string {
  if (status.ended) {
    return total === 0 ? '' : trans.__('complete');
  }
  if (!connected) {
    return trans.__(
      'Not connected to the Jupyter server. New lines appear when the connection is restored.'
    );
  }
  if (status.behind !== null) {
    return trans.__(
      'No live connection to the job. The log comes from the job directory and is %1 behind.',
      duration(status.behind)
    );
  }
  return trans.__('live');
}
