/** Where the final model and the saved versions of a job come from, loaded when requested. */

import React from 'react';
import type { IJobView } from '../../api/types';
import { useCard } from '../context';
import type { CardModel } from '../model';

/** Number of versions with a button, newest first. */
const MAX_VERSIONS = 20;

export function Lineage(props: { model: CardModel; view: IJobView }): React.ReactElement | null {
  const { trans } = useCard();
  const { model } = props;
  const [busy, setBusy] = React.useState(false);
  const [problem, setProblem] = React.useState('');
  const newest = [...model.models].sort((a, b) => b.time - a.time).slice(0, MAX_VERSIONS);
  const versions = newest.map(({ version }) => version);
  if (props.view.record.outputs.some(({ path }) => path.startsWith('model/'))) {
    versions.unshift('');
  }
  // A snapshot has no files to ask for.
  if (!model.fromServer || !versions.length) {
    return null;
  }
  const load = async (version: string): Promise<void> => {
    setBusy(true);
    setProblem('');
    try {
      await model.loadLineage(version);
    } catch (reason) {
      setProblem(reason instanceof Error ? reason.message : String(reason));
    } finally {
      setBusy(false);
    }
  };
  const shown = problem ? null : model.lineage;
  return (
    <div className="jp-Submarine-lineage" role="group" aria-label={trans.__('Origin of the model')}>
      <div className="jp-Submarine-actions">
        {versions.map(version => (
          <button
            key={version}
            type="button"
            className="jp-Submarine-button"
            aria-pressed={shown?.version === version}
            disabled={busy}
            onClick={() => void load(version)}
          >
            {version ? trans.__('Origin of %1', version) : trans.__('Origin of the model')}
          </button>
        ))}
      </div>
      {problem && (
        <p role="alert" className="jp-Submarine-note jp-Submarine-problem">
          {problem}
        </p>
      )}
      {shown && (
        <dl className="jp-Submarine-facts">
          {shown.rows.map(([label, words], row) => (
            <React.Fragment key={row}>
              <dt>{label}</dt>
              <dd>{words}</dd>
            </React.Fragment>
          ))}
        </dl>
      )}
    </div>
  );
}
