import { Signal } from '@lumino/signaling';
import { expect, test } from 'vitest';
import type { State } from '../../src/api/record';
import type { IJobRow } from '../../src/api/types';
import { JobsModel } from '../../src/panel/model';
import type { ISubmarine } from '../../src/tokens';

function row(job_id: string, state: State, created: number): IJobRow {
  return {
    ...{ job_id, name: job_id, state, user: 'ada', queue: 'ml', backend: 'yarn', created },
    ...{ started: null, finished: null, progress: null, tasks: 1, gpus: 0, detail: '' },
    ...{ application_id: null, notebook: '', cell_id: '', workflow: '' },
    ...{ workflow_run: '', workflow_node: '' }
  };
}

/** A server with these jobs, and what was asked of it. */
function server(jobs: IJobRow[]) {
  const said = { asked: [] as object[], cluster: 0, listeners: [] as unknown[], fail: '' };
  let tell: (rows: IJobRow[], total: number, problem: string) => void = () => undefined;
  const channel = {
    connected: true,
    jobs: (listener: typeof tell) => {
      tell = listener;
      said.listeners.push(listener);
      return { dispose: () => said.listeners.pop() };
    }
  };
  const rest = {
    jobs: (options: { limit: number; after?: string }) => {
      said.asked.push(options);
      if (said.fail !== '') {
        return Promise.reject(new Error(said.fail));
      }
      const from = Number(options.after ?? 0);
      const end = from + options.limit;
      const next = end < jobs.length ? String(end) : null;
      return Promise.resolve({
        jobs: jobs.slice(from, end),
        total: jobs.length,
        next,
        problem: ''
      });
    },
    cluster: () => {
      said.cluster++;
      return Promise.reject(new Error('The cluster does not answer.'));
    }
  };
  const connectedChanged = new Signal<object, boolean>(channel);
  const fake = { rest, channel: { ...channel, connectedChanged }, ready: Promise.resolve() };
  const send = (...rows: IJobRow[]) => {
    tell(rows, jobs.length, '');
  };
  return { said, send, submarine: fake as unknown as ISubmarine };
}

const settled = () => new Promise(resolve => setTimeout(resolve));
const ids = (model: JobsModel) => model.rows.map(one => one.job_id);

test('nothing is asked or heard while nobody looks', async () => {
  const { said, submarine } = server([row('a', 'RUNNING', 1)]);
  const model = new JobsModel(submarine);
  await settled();
  expect([said.asked.length, said.cluster, said.listeners.length]).toEqual([0, 0, 0]);
  model.visible = true;
  await settled();
  expect([said.asked.length, said.cluster, said.listeners.length]).toEqual([1, 1, 1]);
  expect(model.clusterProblem).toBe('The cluster does not answer.');
  model.visible = false;
  expect(said.listeners.length).toBe(0);
});

test('running first, then the newest; what changes moves', async () => {
  const { send, submarine } = server([
    row('old', 'SUCCEEDED', 1),
    row('new', 'FAILED', 9),
    row('runs', 'RUNNING', 5)
  ]);
  const model = new JobsModel(submarine);
  model.visible = true;
  await settled();
  expect(ids(model)).toEqual(['runs', 'new', 'old']);
  send(row('runs', 'SUCCEEDED', 5), row('next', 'PENDING', 10));
  expect(ids(model)).toEqual(['next', 'new', 'runs', 'old']);
  expect(model.total).toBe(4);
});

test('10,000 jobs come page by page, each once', async () => {
  const jobs = Array.from({ length: 10000 }, (_, i) => row(`j${i}`, 'SUCCEEDED', 10000 - i));
  const { said, submarine } = server(jobs);
  const model = new JobsModel(submarine);
  model.visible = true;
  await settled();
  expect(model.rows.length).toBe(100);
  expect(model.total).toBe(10000);
  await model.more();
  await model.more();
  expect(said.asked.length).toBe(3);
  expect(ids(model)).toEqual(jobs.slice(0, 300).map(one => one.job_id));
});

test('a job that no longer fits what is searched for leaves the list', async () => {
  const { send, submarine } = server([row('digits', 'RUNNING', 1)]);
  const model = new JobsModel(submarine);
  model.visible = true;
  await model.search({ text: 'DIG', group: 'active' });
  expect(ids(model)).toEqual(['digits']);
  send(row('other', 'RUNNING', 2), row('digits', 'FAILED', 1));
  expect(ids(model)).toEqual([]);
});

test('a server that fails is told of, and asked again', async () => {
  const { said, submarine } = server([row('a', 'RUNNING', 1)]);
  said.fail = 'HDFS is away.';
  const model = new JobsModel(submarine);
  model.visible = true;
  await settled();
  expect(model.problem).toBe('HDFS is away.');
  said.fail = '';
  await model.reload();
  expect([model.problem, ids(model)]).toEqual(['', ['a']]);
});

test('what was free is forgotten when the cluster can no longer be asked', async () => {
  const { submarine } = server([]);
  const answers = [
    Promise.resolve({ gpus_free: 8, problem: '' }),
    Promise.reject(new Error('No.'))
  ];
  Object.assign(submarine.rest, { cluster: () => answers.shift() });
  const model = new JobsModel(submarine);
  await model.refreshCluster();
  expect(model.cluster?.gpus_free).toBe(8);
  await model.refreshCluster();
  expect([model.cluster, model.clusterProblem]).toEqual([null, 'No.']);
});
