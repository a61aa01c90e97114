/**
 * Metrics of a job as small charts and as a table: scalars of the program first, then resource
 * usage.
 */

import React from 'react';
import type { ISeries } from '../../api/types';
import { Chart } from '../../charts/chart';
import { type IMeasure, SCALARS, measures, lineSummary } from '../../charts/measures';
import { COLORS, lineClass } from '../../charts/lines';
import { useCard } from '../context';
import { figure, memory, runningDuration } from '../../format';
import { coresText } from '../labels';

/** Maximum number of rows of the table. */
const MAX_ROWS = 200;

export function Metrics(props: { series: readonly ISeries[] }): React.ReactElement | null {
  const { trans } = useCard();
  const [task, setTask] = React.useState('');
  const [showAll, setShowAll] = React.useState(false);
  const all = React.useMemo(() => measures(props.series), [props.series]);
  if (!all.length) {
    return null;
  }
  const tasks = [...new Set(all.flatMap(one => one.lines.map(line => line.task)))].sort((a, b) =>
    a.localeCompare(b, undefined, { numeric: true })
  );
  const scalars = all.filter(one => one.kind === 'scalar');
  const hidden = showAll ? 0 : Math.max(scalars.length - SCALARS, 0);
  const shown = all.filter(one => showAll || !scalars.slice(SCALARS).includes(one));
  const chosen = tasks.includes(task) ? task : '';
  const faint = !chosen && tasks.length > COLORS;
  return (
    <div className="jp-Submarine-metrics" role="group" aria-label={trans.__('Measurements')}>
      {tasks.length > 1 && <Legend tasks={tasks} chosen={chosen} choose={setTask} faint={faint} />}
      <div className="jp-Submarine-charts">
        {shown.map(measure => (
          <MeasureChart key={measure.key} measure={measure} tasks={tasks} only={chosen} />
        ))}
      </div>
      {hidden > 0 && (
        <button
          type="button"
          className="jp-Submarine-link"
          onClick={() => {
            setShowAll(true);
          }}
        >
          {trans._n('Show %1 more scalar', 'Show %1 more scalars', hidden)}
        </button>
      )}
      <Values measures={all} />
    </div>
  );
}

function MeasureChart(props: {
  measure: IMeasure;
  tasks: readonly string[];
  only: string;
}): React.ReactElement {
  const { trans } = useCard();
  const { measure, tasks, only } = props;
  const large = measure.lines.some(line => lineSummary(line).high >= 1024);
  const { unit, factor } = unitOf(measure.quantity, large, trans);
  // A task has the same color in all charts: add an empty line if it has no values here.
  const lines = tasks.map(name => ({
    name,
    curves:
      only && only !== name
        ? []
        : (measure.lines.find(line => line.task === name)?.curves ?? []).map(({ t, v }) => ({
            t,
            v: factor === 1 ? v : v.map(value => (value === null ? null : value / factor))
          }))
  }));
  return (
    <Chart
      title={measureName(measure, trans)}
      unit={unit}
      lines={lines}
      fromZero={measure.kind === 'resource'}
      faint={!only && tasks.length > COLORS}
      formatTime={shortTime}
    />
  );
}

function Legend(props: {
  tasks: readonly string[];
  chosen: string;
  choose: (task: string) => void;
  faint: boolean;
}): React.ReactElement {
  const { trans } = useCard();
  const { tasks, chosen, choose } = props;
  if (tasks.length > COLORS) {
    return (
      <label className="jp-Submarine-small">
        {trans.__('Curves of')}{' '}
        <select
          value={chosen}
          data-lm-suppress-shortcuts="true"
          onChange={event => {
            choose(event.target.value);
          }}
        >
          <option value="">{trans.__('all %1 tasks', tasks.length)}</option>
          {tasks.map(task => (
            <option key={task}>{task}</option>
          ))}
        </select>
      </label>
    );
  }
  return (
    <div className="jp-Submarine-legend" role="group" aria-label={trans.__('Curves of')}>
      {tasks.map((task, n) => (
        <button
          key={task}
          type="button"
          className="jp-Submarine-legendItem"
          aria-pressed={chosen === task}
          title={trans.__('Show only this task')}
          onClick={() => {
            choose(chosen === task ? '' : task);
          }}
        >
          <svg width="18" height="8" aria-hidden="true" className={lineClass(n, false)}>
            <polyline points="0,4 18,4" />
          </svg>
          {task}
        </button>
      ))}
    </div>
  );
}

/** The values as a table. */
function Values(props: { measures: readonly IMeasure[] }): React.ReactElement {
  const { trans } = useCard();
  const rows = props.measures.flatMap(measure =>
    measure.lines.map(line => ({ measure, task: line.task, ...lineSummary(line) }))
  );
  return (
    <details>
      <summary>{trans.__('Values as a table')}</summary>
      <div
        className="jp-Submarine-scroll"
        role="group"
        tabIndex={0}
        aria-label={trans.__('Table of values')}
        data-lm-suppress-shortcuts="true"
      >
        <table className="jp-Submarine-table">
          <thead>
            <tr>
              <th scope="col">{trans.__('Measure')}</th>
              <th scope="col">{trans.__('Task')}</th>
              {[trans.__('Last'), trans.__('Mean'), trans.__('Lowest'), trans.__('Highest')].map(
                head => (
                  <th key={head} scope="col" className="jp-mod-number">
                    {head}
                  </th>
                )
              )}
            </tr>
          </thead>
          <tbody>
            {rows.slice(0, MAX_ROWS).map(({ measure, task, last, mean, low, high }) => (
              <tr key={`${measure.key} ${task}`}>
                <th scope="row">{measureName(measure, trans)}</th>
                <td>{task}</td>
                {[last, mean, low, high].map((value, n) => (
                  <td key={n} className="jp-mod-number">
                    {quantityFormat(measure.quantity, trans)(value)}
                  </td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {rows.length > MAX_ROWS && (
        <p className="jp-Submarine-quiet jp-Submarine-small">
          {trans.__('%1 of %2 rows.', MAX_ROWS, rows.length)}
        </p>
      )}
    </details>
  );
}

type Trans = ReturnType<typeof useCard>['trans'];

function measureName(measure: IMeasure, trans: Trans): string {
  const words: Record<string, string> = {
    cpu_percent: trans.__('CPU'),
    memory: trans.__('Memory'),
    gpu_percent: trans.__('GPU'),
    gpu_memory: trans.__('GPU memory')
  };
  return measure.kind === 'resource' ? (words[measure.name] ?? measure.name) : measure.name;
}

function quantityFormat(quantity: IMeasure['quantity'], trans: Trans): (value: number) => string {
  switch (quantity) {
    case 'cores':
      return value => coresText(Math.round(value * 100) / 100, trans);
    case 'memory':
      return memory;
    case 'percent':
      return value => `${value.toFixed(0)} %`;
    case 'figure':
      return figure;
  }
}

/** Unit of an axis and its factor to the unit of the values. */
function unitOf(
  quantity: IMeasure['quantity'],
  large: boolean,
  trans: Trans
): { unit: string; factor: number } {
  switch (quantity) {
    case 'cores':
      return { unit: trans.__('cores'), factor: 1 };
    case 'memory':
      return large ? { unit: 'GiB', factor: 1024 } : { unit: 'MiB', factor: 1 };
    case 'percent':
      return { unit: '%', factor: 1 };
    case 'figure':
      return { unit: '', factor: 1 };
  }
}

/** A time on an axis: `0`, `45 s`, `2 min`, `1 h 30 min`. */
export function shortTime(seconds: number): string {
  if (seconds < 60) {
    return seconds === 0 ? '0' : `${Math.round(seconds)} s`;
  }
  return runningDuration(seconds)
    .replace(/ 00 (s|min)$/, '')
    .replace(/ 0(\d)/, ' $1');
}
