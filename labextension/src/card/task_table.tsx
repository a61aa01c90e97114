/** The tasks of a job: a table with the columns that say something; many in pages, by role first. */

import React from 'react';
import { ENDED, type IJobView, type ITask } from '../api/types';
import { useCard } from './context';
import { StateIcon } from './icons';
import { Link } from './link';
import type { CardModel } from './model';
import { momentOf } from './phases';
import {
  type IRole,
  PAGE,
  byRole,
  cores,
  exitWords,
  ordered,
  page,
  shortContainer,
  tellingFirst
} from './tasks';
import { duration, figure, memory, moment, percent } from './words';

interface IColumn {
  key: string;
  head: string;
  number?: boolean;
  text: (task: ITask) => string;
  cell?: (task: ITask, text: string) => React.ReactNode;
}

export function Tasks(props: {
  model: CardModel;
  view: IJobView;
  now: number;
  /** Whether its links may be followed: not those of a notebook from somebody else. */
  linked: boolean;
}): React.ReactElement | null {
  const { trans } = useCard();
  const { model, view } = props;
  const { tasks } = model;
  const [role, setRole] = React.useState('');
  const [number, setNumber] = React.useState(0);
  const roles = React.useMemo(() => byRole(tasks), [tasks]);
  const rows = React.useMemo(() => {
    const inOrder = ordered(tasks, view.log_task).filter(task => !role || task.role === role);
    return inOrder.length > PAGE ? tellingFirst(inOrder) : inOrder;
  }, [tasks, role, view.log_task]);
  if (!tasks.length) {
    return null;
  }
  const shown = page(rows, number);
  const columns = usedColumns(
    allColumns(trans, momentOf(view.record, props.now), props.linked),
    shown.rows
  );
  return (
    <div className="jp-Submarine-tasks" role="group" aria-label={trans.__('Tasks')}>
      {tasks.length > 1 && (roles.length > 1 || tasks.length > PAGE) && (
        <Roles roles={roles} chosen={role} choose={setRole} />
      )}
      {view.task_count > tasks.length && (
        <Left model={model} here={tasks.length} total={view.task_count} />
      )}
      <Table columns={columns} rows={shown.rows} />
      {shown.pages > 1 && <Pager shown={shown} total={rows.length} turn={setNumber} />}
    </div>
  );
}

/** Of very many tasks a view holds those that tell something. */
function Left(props: { model: CardModel; here: number; total: number }): React.ReactElement {
  const { trans } = useCard();
  const [problem, setProblem] = React.useState('');
  const [busy, setBusy] = React.useState(false);
  const load = async (): Promise<void> => {
    setBusy(true);
    try {
      await props.model.loadTasks();
    } catch (reason) {
      setProblem(reason instanceof Error ? reason.message : String(reason));
    } finally {
      setBusy(false);
    }
  };
  return (
    <p className="jp-Submarine-quiet jp-Submarine-small">
      {trans.__('%1 of %2 tasks, those that tell most.', props.here, props.total)}{' '}
      {props.model.fromServer && (
        <button
          type="button"
          className="jp-Submarine-link"
          disabled={busy}
          onClick={() => void load()}
        >
          {trans.__('Show all')}
        </button>
      )}{' '}
      {problem}
    </p>
  );
}

function Roles(props: {
  roles: readonly IRole[];
  chosen: string;
  choose: (role: string) => void;
}): React.ReactElement {
  const { trans } = useCard();
  return (
    <div className="jp-Submarine-roles" role="group" aria-label={trans.__('Roles')}>
      {props.roles.map(({ role, size, states, words }) => (
        <button
          key={role}
          type="button"
          className="jp-Submarine-role"
          aria-pressed={props.chosen === role}
          title={trans.__('Show only this role')}
          onClick={() => {
            props.choose(props.chosen === role ? '' : role);
          }}
        >
          <strong>
            {role} × {size}
          </strong>
          {states.map(({ state, count }) => (
            <span key={state} className="jp-Submarine-roleState">
              <StateIcon state={state} /> {count} {state}
            </span>
          ))}
          {words && <span className="jp-Submarine-quiet">{words}</span>}
        </button>
      ))}
    </div>
  );
}

function Table(props: { columns: readonly IColumn[]; rows: readonly ITask[] }): React.ReactElement {
  const { trans } = useCard();
  const { columns } = props;
  return (
    <div
      className="jp-Submarine-scroll"
      role="group"
      tabIndex={0}
      aria-label={trans.__('Table of tasks')}
      data-lm-suppress-shortcuts="true"
    >
      <table className="jp-Submarine-table">
        <thead>
          <tr>
            {columns.map(({ key, head, number }) => (
              <th key={key} scope="col" className={number ? 'jp-mod-number' : ''}>
                {head}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {props.rows.map(task => (
            <React.Fragment key={task.task}>
              <tr>
                {columns.map(column => (
                  <Cell key={column.key} column={column} task={task} />
                ))}
              </tr>
              {noteOf(task) && (
                <tr className="jp-Submarine-taskNote">
                  <td colSpan={columns.length}>
                    <span className="jp-Submarine-sticky">↳ {noteOf(task)}</span>
                  </td>
                </tr>
              )}
            </React.Fragment>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function Cell(props: { column: IColumn; task: ITask }): React.ReactElement {
  const { column, task } = props;
  const text = column.text(task);
  const content = column.cell ? column.cell(task, text) : text;
  return column.key === 'task' ? (
    <th scope="row">{content}</th>
  ) : (
    <td className={column.number ? 'jp-mod-number' : ''}>{content}</td>
  );
}

/** Why it ended or waits; what every task of a cancelled job says is no news. */
function noteOf(task: ITask): string {
  if (task.state === 'SUCCEEDED' || task.state === 'RUNNING') {
    return '';
  }
  return task.detail || (task.state === 'FAILED' ? (task.reason ?? '').replace(/_/g, ' ') : '');
}

function Pager(props: {
  shown: ReturnType<typeof page>;
  total: number;
  turn: (number: number) => void;
}): React.ReactElement {
  const { trans } = useCard();
  const { shown, total, turn } = props;
  const last = Math.min(shown.from + PAGE, total);
  return (
    <div className="jp-Submarine-pager">
      <button
        type="button"
        className="jp-Submarine-button"
        disabled={shown.number === 0}
        onClick={() => {
          turn(shown.number - 1);
        }}
      >
        {trans.__('Previous')}
      </button>
      <span aria-live="polite">
        {trans.__('%1 to %2 of %3; failed and waiting ones first', shown.from + 1, last, total)}
      </span>
      <button
        type="button"
        className="jp-Submarine-button"
        disabled={shown.number === shown.pages - 1}
        onClick={() => {
          turn(shown.number + 1);
        }}
      >
        {trans.__('Next')}
      </button>
    </div>
  );
}

function usedColumns(columns: readonly IColumn[], rows: readonly ITask[]): IColumn[] {
  return columns.filter(
    ({ key, text }) => key === 'task' || key === 'state' || rows.some(task => text(task) !== '')
  );
}

function allColumns(
  trans: ReturnType<typeof useCard>['trans'],
  now: number,
  linked: boolean
): IColumn[] {
  const known = (value: number | null, words: (value: number) => string): string =>
    value === null ? '' : words(value);
  return [
    {
      key: 'task',
      head: trans.__('Task'),
      text: task => (/:\d+$/.test(task.task) ? task.task : `${task.role}:${task.index}`)
    },
    {
      key: 'state',
      head: trans.__('State'),
      text: task => task.state,
      cell: task => (
        <span className="jp-Submarine-state">
          <StateIcon state={task.state} /> {task.state}
        </span>
      )
    },
    {
      key: 'progress',
      head: trans.__('Progress'),
      text: ({ progress, state }) =>
        progress === null || ENDED.has(state) ? '' : percent(Math.min(Math.max(progress, 0), 1)),
      cell: ({ progress }, text) => text && <Bar done={progress ?? 0} text={text} />
    },
    { key: 'host', head: trans.__('Host'), text: task => task.host ?? '' },
    {
      key: 'container',
      head: trans.__('Container'),
      text: task => shortContainer(task.container_id ?? ''),
      cell: (task, text) => (
        <Link url={linked ? task.log_url : null} title={task.container_id ?? ''}>
          <span title={task.container_id ?? ''}>{text}</span>
        </Link>
      )
    },
    {
      key: 'started',
      head: trans.__('Started'),
      text: task => known(task.started, time => moment(time, now))
    },
    {
      key: 'finished',
      head: trans.__('Finished'),
      text: task => known(task.finished, time => moment(time, now))
    },
    {
      key: 'ran',
      head: trans.__('Ran'),
      number: true,
      text: ({ started, finished }) =>
        started === null || finished === null ? '' : duration(finished - started)
    },
    {
      key: 'cpu',
      head: trans.__('CPU'),
      number: true,
      text: task => known(cores(task, now), value => trans.__('%1 cores', figure(round(value))))
    },
    {
      key: 'memory',
      head: trans.__('Memory'),
      number: true,
      text: task => (ENDED.has(task.state) ? '' : known(task.memory_now, memory))
    },
    {
      key: 'peak',
      head: trans.__('Peak'),
      number: true,
      text: task => (task.memory_peak ? memory(task.memory_peak) : '')
    },
    {
      key: 'gpus',
      head: trans.__('GPUs'),
      text: ({ gpus }) =>
        gpus
          .slice(0, 8)
          .map(name => name.replace(/^GPU-/, '').slice(0, 8))
          .join(' ') + (gpus.length > 8 ? ' …' : ''),
      cell: ({ gpus }, text) => <span title={gpus.join('\n')}>{text}</span>
    },
    {
      key: 'gpu',
      head: trans.__('GPU use'),
      number: true,
      text: task =>
        [known(task.gpu_percent, value => `${value.toFixed(0)} %`), known(task.gpu_memory, memory)]
          .filter(Boolean)
          .join(', ')
    },
    {
      key: 'restarts',
      head: trans.__('Restarts'),
      number: true,
      text: task => (task.restarts ? String(task.restarts) : '')
    },
    {
      key: 'exit',
      head: trans.__('Exit'),
      number: true,
      text: task => (ENDED.has(task.state) ? exitWords(task) : '')
    }
  ];
}

function round(value: number): number {
  return value < 0.095 ? Math.round(value * 100) / 100 : Math.round(value * 10) / 10;
}

function Bar(props: { done: number; text: string }): React.ReactElement {
  const width = `${Math.min(Math.max(props.done, 0), 1) * 100}%`;
  return (
    <span className="jp-Submarine-state">
      <span className="jp-Submarine-track jp-mod-small" aria-hidden="true">
        <span className="jp-Submarine-done" style={{ width }} />
      </span>
      {props.text}
    </span>
  );
}
