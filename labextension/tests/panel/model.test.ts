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

/** A fake server with these jobs that records its requests. */
function server(jobs: IJobRow[]) {
  const state = {
    requests: [] as object[],
    clusterRequests: 0,
    listeners: [] as unknown[],
    error: ''
  };
  let notify: (rows: IJobRow[], total: number, problem: string) => void = () => undefined;
  const channel = {
    connected: true,
    jobs: (listener: typeof notify) => {
      notify = listener;
      state.listeners.push(listener);
      return { dispose: () => state.listeners.pop() };
    }
  };
  const rest = {
    jobs: (options: { limit: number; after?: string }) => {
      state.requests.push(options);
      if (state.error !== '') {
        return Promise.reject(new Error(state.error));
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
      state.clusterRequests++;
      return Promise.reject(new Error('The cluster does not answer.'));
    }
  };
  const connectedChanged = new Signal<object, boolean>(channel);
  const fake = { rest, channel: { ...channel, connectedChanged }, ready: Promise.resolve() };
  const send = (...rows: IJobRow[]) => {
    notify(rows, jobs.length, '');
  };
  return { state, send, submarine: fake as unknown as ISubmarine };
}

const settle = () => new Promise(resolve => setTimeout(resolve));
const ids = (model: JobsModel) => model.rows.map(one => one.job_id);

test('sends no requests and does not subscribe while the panel is hidden', async () => {
  const { state, submarine } = server([row('a', 'RUNNING', 1)]);
  const model = new JobsModel(submarine);
  await settle();
  expect([state.requests.length, state.clusterRequests, state.listeners.length]).toEqual([0, 0, 0]);
  model.visible = true;
  await settle();
  expect([state.requests.length, state.clusterRequests, state.listeners.length]).toEqual([1, 1, 1]);
  expect(model.clusterProblem).toBe('The cluster does not answer.');
  model.visible = false;
  expect(state.listeners.length).toBe(0);
});

test('orders running jobs first, then the newest, and moves changed jobs', async () => {
  const { send, submarine } = server([
    row('old', 'SUCCEEDED', 1),
    row('new', 'FAILED', 9),
    row('runs', 'RUNNING', 5)
  ]);
  const model = new JobsModel(submarine);
  model.visible = true;
  await settle();
  expect(ids(model)).toEqual(['runs', 'new', 'old']);
  send(row('runs', 'SUCCEEDED', 5), row('next', 'PENDING', 10));
  expect(ids(model)).toEqual(['next', 'new', 'runs', 'old']);
  expect(model.total).toBe(4);
});

test('loads 10,000 jobs page by page without duplicates', async () => {
  const jobs = Array.from({ length: 10000 }, (_, i) => row(`j${i}`, 'SUCCEEDED', 10000 - i));
  const { state, submarine } = server(jobs);
  const model = new JobsModel(submarine);
  model.visible = true;
  await settle();
  expect(model.rows.length).toBe(100);
  expect(model.total).toBe(10000);
  await model.more();
  await model.more();
  expect(state.requests.length).toBe(3);
  expect(ids(model)).toEqual(jobs.slice(0, 300).map(one => one.job_id));
});

test('removes a job that no longer matches the query', async () => {
  const { send, submarine } = server([row('digits', 'RUNNING', 1)]);
  const model = new JobsModel(submarine);
  model.visible = true;
  await model.search({ text: 'DIG', group: 'active' });
  expect(ids(model)).toEqual(['digits']);
  send(row('other', 'RUNNING', 2), row('digits', 'FAILED', 1));
  expect(ids(model)).toEqual([]);
});

test('reports a failed request and recovers on reload', async () => {
  const { state, submarine } = server([row('a', 'RUNNING', 1)]);
  state.error = 'HDFS is away.';
  const model = new JobsModel(submarine);
  model.visible = true;
  await settle();
  expect(model.problem).toBe('HDFS is away.');
  state.error = '';
  await model.reload();
  expect([model.problem, ids(model)]).toEqual(['', ['a']]);
});

test('clears the free resources when the cluster request fails', async () => {
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
