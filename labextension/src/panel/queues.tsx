/** Queues with their free GPUs, refreshed every 10 s while the panel is visible. */

import type { TranslationBundle } from '@jupyterlab/translation';
import { refreshIcon } from '@jupyterlab/ui-components';
import React from 'react';
import type { IQueue } from '../api/types';
import type { JobsModel } from './model';

export function Queues(props: { model: JobsModel; trans: TranslationBundle }): React.ReactElement {
  const { model, trans } = props;
  const { cluster, clusterProblem } = model;
  const silent = clusterProblem === '' ? trans.__('Cluster') : trans.__('Cluster: no response');
  return (
    <details className="jp-Submarine-jobs-queues">
      <summary>
        <span>
          {cluster !== null && cluster.gpus_total > 0
            ? trans.__('%1 of %2 GPUs free', cluster.gpus_free, cluster.gpus_total)
            : silent}
        </span>
      </summary>
      {clusterProblem !== '' && <p role="status">{clusterProblem}</p>}
      {cluster !== null && cluster.queues.length > 0 && (
        <table>
          <thead>
            <tr>
              <th scope="col">{trans.__('Queue')}</th>
              <th scope="col">{trans.__('GPUs free')}</th>
              <th scope="col">{trans.__('Used')}</th>
              <th scope="col">{trans.__('Waiting')}</th>
            </tr>
          </thead>
          <tbody>
            {cluster.queues.map(queue => (
              <tr key={queue.name}>
                <th scope="row" title={queue.name}>
                  {queue.name}
                </th>
                <td>{free(queue)}</td>
                <td>{queue.used === null ? '-' : `${Math.round(queue.used)} %`}</td>
                <td>{queue.pending}</td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
      {cluster !== null && cluster.queues.length === 0 && clusterProblem === '' && (
        <p>{trans.__('The backend %1 has no queues.', cluster.backend)}</p>
      )}
      <button
        type="button"
        className="jp-Submarine-jobs-button"
        onClick={() => {
          void model.refreshCluster();
        }}
      >
        <refreshIcon.react tag="span" width="14px" />
        {trans.__('Refresh')}
      </button>
    </details>
  );
}

function free({ gpus_free, gpus_total }: IQueue): string {
  return gpus_free === null || gpus_total === null ? '-' : `${gpus_free} / ${gpus_total}`;
}
