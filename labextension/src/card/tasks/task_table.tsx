/** The table of tasks, with pages and a selection by role if there are many. */

import React from 'react';
import type { IJobView } from '../../api/types';
import type { ITask } from '../../api/record';
import { useCard } from '../context';
import type { CardModel } from '../model';
import { referenceTime } from '../details/phases';
import { OmittedTasks, Pager, Roles } from './task_selection';
import { allColumns, type IColumn, usedColumns } from './task_columns';
import { PAGE, byRole, ordered, page, byRelevance } from './tasks';

export function Tasks(props: {
  model: CardModel;
  view: IJobView;
  now: number;
  /** Whether links may be followed; false for untrusted notebooks. */
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
    return inOrder.length > PAGE ? byRelevance(inOrder) : inOrder;
  }, [tasks, role, view.log_task]);
  if (!tasks.length) {
    return null;
  }
  const shown = page(rows, number);
  const columns = usedColumns(
    allColumns(trans, referenceTime(view.record, props.now), props.linked),
    shown.rows
  );
  return (
    <div className="jp-Submarine-tasks" role="group" aria-label={trans.__('Tasks')}>
      {tasks.length > 1 && (roles.length > 1 || tasks.length > PAGE) && (
        <Roles roles={roles} chosen={role} choose={setRole} />
      )}
      {view.task_count > tasks.length && (
        <OmittedTasks model={model} loaded={tasks.length} total={view.task_count} />
      )}
      <Table columns={columns} rows={shown.rows} />
      {shown.pages > 1 && <Pager shown={shown} total={rows.length} turn={setNumber} />}
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

/** Why a task ended or waits; empty for running and successful tasks. */
function noteOf(task: ITask): string {
  if (task.state === 'SUCCEEDED' || task.state === 'RUNNING') {
    return '';
  }
  return task.detail || (task.state === 'FAILED' ? (task.reason ?? '').replace(/_/g, ' ') : '');
}
