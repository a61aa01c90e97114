/** Details of a card: saved models, return values, location and links. */

import React from 'react';
import type { IJobView, IModelVersion } from '../../api/types';
import { useCard } from '../context';
import { Link } from '../link';
import { duration, memory, formatTime, size } from '../../format';

/** Number of versions that are shown, newest first. */
const MAX_VERSIONS = 20;

export function Models(props: {
  models: readonly IModelVersion[];
  now: number;
}): React.ReactElement | null {
  const { trans } = useCard();
  const newest = [...props.models].sort((a, b) => b.time - a.time);
  if (!newest.length) {
    return null;
  }
  return (
    <div className="jp-Submarine-models" role="group" aria-label={trans.__('Saved models')}>
      <div className="jp-Submarine-label">
        {trans._n('%1 saved model', '%1 saved models', newest.length)}
      </div>
      <div
        className="jp-Submarine-scroll"
        role="group"
        tabIndex={0}
        aria-label={trans.__('Table of saved models')}
        data-lm-suppress-shortcuts="true"
      >
        <table className="jp-Submarine-table">
          <thead>
            <tr>
              <th scope="col">{trans.__('Version')}</th>
              <th scope="col">{trans.__('Saved')}</th>
              <th scope="col" className="jp-mod-number">
                {trans.__('Size')}
              </th>
              <th scope="col" className="jp-mod-number">
                {trans.__('Files')}
              </th>
              <th scope="col">{trans.__('Digest')}</th>
            </tr>
          </thead>
          <tbody>
            {newest.slice(0, MAX_VERSIONS).map(model => (
              <tr key={model.version}>
                <th scope="row">
                  {model.version}
                  {model.name && model.name !== model.version && ` (${model.name})`}
                </th>
                <td>{formatTime(model.time, props.now)}</td>
                <td className="jp-mod-number">{size(model.size)}</td>
                <td className="jp-mod-number">{model.files}</td>
                <td>
                  <code title={model.digest}>
                    {model.digest.replace(/^sha256:/, '').slice(0, 12)}
                  </code>
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {newest.length > MAX_VERSIONS && (
        <p className="jp-Submarine-quiet jp-Submarine-small">
          {trans.__('The newest %1 of %2 versions.', MAX_VERSIONS, newest.length)}
        </p>
      )}
    </div>
  );
}

/** Values that the cell returned. */
export function ReturnValues(props: {
  result: Readonly<Record<string, string>>;
}): React.ReactElement | null {
  const { trans } = useCard();
  const values = Object.entries(props.result).slice(0, 20);
  return values.length ? (
    <dl className="jp-Submarine-facts">
      {values.map(([name, value]) => (
        <React.Fragment key={name}>
          <dt>{trans.__('Returned %1', name)}</dt>
          <dd>
            <code>{value}</code>
          </dd>
        </React.Fragment>
      ))}
    </dl>
  ) : null;
}

export function Facts(props: {
  view: IJobView;
  now: number;
  /** Whether links may be followed; false for untrusted notebooks. */
  linked: boolean;
  children?: React.ReactNode;
}): React.ReactElement {
  const { trans } = useCard();
  const { record } = props.view;
  const links = Object.entries(record.links).slice(0, 20);
  const place = [record.backend, record.queue ? trans.__('queue %1', record.queue) : ''];
  const rows: [string, string][] = [
    [trans.__('Submitted'), record.created === null ? '' : formatTime(record.created, props.now)],
    [trans.__('Finished'), record.finished === null ? '' : formatTime(record.finished, props.now)],
    [trans.__('User'), record.user],
    [trans.__('Where'), place.filter(Boolean).join(', ')],
    [trans.__('Application'), record.application_id ?? ''],
    [trans.__('Requested'), requested(props.view, trans)],
    [trans.__('Used'), used(props.view, trans)],
    [
      trans.__('Epoch'),
      record.epoch > 1 ? trans.__('%1: all tasks were restarted', record.epoch) : ''
    ],
    [trans.__('Output'), outputs(props.view, trans)],
    ...record.saved_outputs.map(({ name, uri, files, bytes }): [string, string] => [
      trans.__('Output %1', name),
      trans._n('%2: %1 file, %3', '%2: %1 files, %3', files, uri, size(bytes))
    ]),
    [trans.__('Job directory'), record.job_dir],
    [trans.__('Command'), props.view.command]
  ];
  return (
    <details className="jp-Submarine-more">
      <summary>{trans.__('Details')}</summary>
      <dl className="jp-Submarine-facts">
        {rows
          .filter(([, words]) => words)
          .map(([label, words]) => (
            <React.Fragment key={label}>
              <dt>{label}</dt>
              <dd>{words}</dd>
            </React.Fragment>
          ))}
        {links.length > 0 && (
          <>
            <dt>{trans.__('Links')}</dt>
            <dd>
              {links.map(([label, url]) => (
                <span key={label} className="jp-Submarine-linkItem">
                  {props.linked ? <Link url={url}>{label}</Link> : `${label}: ${url}`}
                </span>
              ))}
            </dd>
          </>
        )}
      </dl>
      {props.children}
    </details>
  );
}

type Trans = ReturnType<typeof useCard>['trans'];

/** `worker: 2 of 3 GiB, 1 vcore, 1 GPU`. */
function requested({ record }: IJobView, trans: Trans): string {
  const roles = Object.entries(object(record.resources['requested'])).slice(0, 8);
  return roles
    .map(([role, value]) => {
      const resources = object(value);
      const words = [
        positive(resources['memory'], memory),
        positive(resources['vcores'], n => trans._n('%1 vcore', '%1 vcores', n)),
        positive(resources['gpus'], n => trans._n('%1 GPU', '%1 GPUs', n))
      ];
      const one = words.filter(Boolean).join(', ');
      const count = record.tasks.filter(task => task.role === role).length;
      const all = count > 1 ? trans.__('%1 × %2', count, one) : one;
      return roles.length > 1 ? `${role}: ${all}` : all;
    })
    .filter(Boolean)
    .join('; ');
}

function used({ record }: IJobView, trans: Trans): string {
  const found = object(record.resources['used']);
  return [
    positive(found['memory_peak'], value => trans.__('peak %1', memory(value))),
    positive(found['cpu_seconds'], value => trans.__('CPU %1', duration(value)))
  ]
    .filter(Boolean)
    .join('; ');
}

function outputs({ record }: IJobView, trans: Trans): string {
  const all = record.outputs;
  const total = size(all.reduce((sum, { size: bytes }) => sum + bytes, 0));
  return all.length ? trans._n('%1 file, %2', '%1 files, %2', all.length, total) : '';
}

function object(value: unknown): Record<string, unknown> {
  return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {};
}

function positive(value: unknown, words: (value: number) => string): string {
  return typeof value === 'number' && value > 0 ? words(value) : '';
}
