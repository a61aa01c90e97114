import { ServerConnection } from '@jupyterlab/services';
import { nullTranslator } from '@jupyterlab/translation';
import { expect, test, vi } from 'vitest';
import packageJson from '../../package.json';
import { ApiError, isAbort } from '../../src/api/rest/errors';
import { checkReadiness, absenceReason, API, VERSION, sameRelease } from '../../src/api/readiness';
import { Requests } from '../../src/api/rest/request';
import { Rest } from '../../src/api/rest/rest';
import type { ISearchHit } from '../../src/api/types';

const trans = nullTranslator.load('jupyter_submarine');
const BASE = 'http://localhost:8888/user/a%20b/';
const WHERE = { task: 'worker:0', attempt: 'e1-a1', stream: 'stdout' };

function rest(answer: (request: Request) => Response | Promise<Response>) {
  const requests: Request[] = [];
  const settings = ServerConnection.makeSettings({
    baseUrl: BASE,
    wsUrl: 'ws://localhost:8888/user/a%20b/',
    token: 'secret',
    fetch: (input: RequestInfo) => {
      const request = input as Request;
      requests.push(request);
      return Promise.resolve(answer(request));
    }
  });
  return { requests, rest: new Rest(new Requests(settings, trans)) };
}

function json(body: unknown, status = 200): Response {
  return new Response(JSON.stringify(body), { status });
}

async function problemOf(promise: Promise<unknown>): Promise<ApiError> {
  const problem: unknown = await promise.then(
    () => undefined,
    (reason: unknown) => reason
  );
  expect(problem).toBeInstanceOf(ApiError);
  return problem as ApiError;
}

test('VERSION is the version in package.json', () => {
  expect(VERSION).toBe(packageJson.version);
});

test.each([
  ['0.1.0', '0.1.0', true],
  ['1.2.0-rc.1', '1.2.0rc1', true],
  ['1.2.0-alpha.3', '1.2.0a3', true],
  ['1.2.0', '1.2.0+local.1', true],
  ['1.2.0', '1.2.1', false],
  ['1.2.0', '1.2.0rc1', false],
  ['1.2.0', 'nonsense', false]
])('sameRelease of %s and %s is %s', (one, other, same) => {
  expect(sameRelease(one, other)).toBe(same);
});

test('sends GET requests below the base URL, encoded and not counted as activity', async () => {
  const { requests, rest: api } = rest(() => json({ jobs: [], total: 0, next: null, problem: '' }));
  await api.jobs({ states: ['RUNNING', 'PENDING'], text: 'a&b', limit: 5 });
  const url = new URL(requests[0]?.url ?? '');
  expect(url.pathname).toBe('/user/a%20b/submarine/api/v1/jobs');
  expect(url.searchParams.getAll('state')).toEqual(['RUNNING', 'PENDING']);
  expect(url.searchParams.get('text')).toBe('a&b');
  expect(url.searchParams.get('no_track_activity')).toBe('1');
  expect(url.searchParams.has('after')).toBe(false);
  expect(requests[0]?.headers.get('Authorization')).toBe('token secret');
  await api.job('../../contents?x');
  expect(new URL(requests[1]?.url ?? '').pathname).toBe(
    '/user/a%20b/submarine/api/v1/jobs/..%2F..%2Fcontents%3Fx'
  );
});

test('sends actions as POST requests that count as activity', async () => {
  const { requests, rest: api } = rest(() => json({ job_id: 'b-2' }, 202));
  await api.cancel('a-1', 'enough');
  expect(await api.rerun('a-1', true)).toBe('b-2');
  expect(requests.map(request => request.method)).toEqual(['POST', 'POST']);
  expect(requests[0]?.url).not.toContain('no_track_activity');
  expect(await requests[0]?.json()).toEqual({ why: 'enough' });
  expect(await requests[1]?.json()).toEqual({ resume: true });
});

test('returns log bytes with their offset and the length of the log', async () => {
  const headers = { 'X-Submarine-Offset': '90', 'X-Submarine-Length': '100' };
  const { rest: api } = rest(() => new Response('\u001b[1mabc', { headers }));
  const piece = await api.log('a-1', WHERE, -10, 10);
  expect(new TextDecoder().decode(piece.data)).toBe('\u001b[1mabc');
  expect([piece.offset, piece.length]).toEqual([90, 100]);
});

test('builds URLs for the browser', () => {
  const { rest: api } = rest(() => json({}));
  const download = new URL(api.downloadUrl('a-1', WHERE));
  expect(download.pathname).toBe('/user/a%20b/submarine/api/v1/jobs/a-1/log');
  expect(Object.fromEntries(download.searchParams)).toEqual({ ...WHERE, download: '1' });
  expect(api.tensorboardUrl(['a-1', 'b/../2'])).toBe(
    `${BASE}submarine/tensorboard/a-1,b%2F..%2F2/`
  );
});

test('an ApiError contains the error, the fix and the code of the server', async () => {
  const body = { error: 'No job a-1.', fix: 'See the list.', code: 'JobNotFoundError' };
  const problem = await problemOf(rest(() => json(body, 404)).rest.job('a-1'));
  expect([problem.message, problem.status, problem.code]).toEqual([
    'No job a-1. See the list.',
    404,
    'JobNotFoundError'
  ]);
});

test.each([
  [404, '<html>404</html>', 'absent'],
  [404, '{"message": "Not Found"}', 'absent'],
  [403, '<html>', 'forbidden'],
  [502, '<html>Bad gateway', ''],
  [200, '<html>Log in</html>', 'unreadable']
])('reports the response %i %j in one line', async (status, text, code) => {
  const problem = await problemOf(rest(() => new Response(text, { status })).rest.job('a-1'));
  expect(problem.code).toBe(code);
  expect(problem.message).not.toContain('<');
  expect(problem.message).not.toContain('\n');
});

test('reports a server that does not respond', async () => {
  const { rest: api } = rest(() => Promise.reject(new TypeError('Failed to fetch')));
  expect((await problemOf(api.cluster())).message).toBe('The Jupyter server does not respond.');
});

function stream(pieces: (string | Error)[], ended = vi.fn()): Response {
  const encoder = new TextEncoder();
  const body = new ReadableStream<Uint8Array>({
    pull: controller => {
      const piece = pieces.shift();
      if (piece === undefined) {
        controller.close();
      } else if (piece instanceof Error) {
        controller.error(piece);
      } else {
        controller.enqueue(encoder.encode(piece));
      }
    },
    cancel: () => {
      ended();
    }
  });
  return new Response(body);
}

const QUERY = {
  text: 'é',
  regex: false,
  matchCase: true,
  from: 7,
  backward: true,
  limit: 10
};

test('delivers each search hit for any split of the stream', async () => {
  const hits: ISearchHit[] = [];
  const { requests, rest: api } = rest(() =>
    stream(['{"offs', 'et":1}\n{"offset":2}\n\n', '{"done":true,"next":null,', '"scanned":9}'])
  );
  const done = await api.search('a-1', WHERE, QUERY, hit => hits.push(hit));
  expect(done).toEqual({ next: null, scanned: 9 });
  expect(hits.map(hit => hit.offset)).toEqual([1, 2]);
  const words = new URL(requests[0]?.url ?? '').searchParams;
  expect(words.get('q')).toBe('é');
  expect([words.get('regex'), words.get('case'), words.get('backward')]).toEqual(['0', '1', '1']);
});

test('rejects a search whose response is incomplete or contains an error', async () => {
  const broken = [['{"offset":1}\n'], ['{"offset":1}\n', new TypeError('network')], ['{"off\n']];
  for (const pieces of broken) {
    const { rest: api } = rest(() => stream(pieces));
    const problem = await problemOf(api.search('a-1', WHERE, QUERY, () => undefined));
    expect(problem.message).toContain('is incomplete');
  }
  const { rest: api } = rest(() => stream(['{"error":"HDFS is away.","fix":"","code":"x"}\n']));
  const problem = await problemOf(api.search('a-1', WHERE, QUERY, () => undefined));
  expect(problem.message).toBe('HDFS is away.');
});

test('an aborted search cancels the stream', async () => {
  const ended = vi.fn();
  const { rest: api } = rest(() => stream(['{"offset":1}\n', '{"offset":2}\n'], ended));
  const stop = () => {
    throw new DOMException('enough', 'AbortError');
  };
  const problem: unknown = await api
    .search('a-1', WHERE, QUERY, stop)
    .catch((reason: unknown) => reason);
  expect(isAbort(problem)).toBe(true);
  expect(ended).toHaveBeenCalledOnce();
});

const HEALTH = { version: VERSION, api: API, backend: null, profile: '', reachable: true };

test.each([
  [json({ ...HEALTH, problem: '' }), true, '', ''],
  [json({ ...HEALTH, version: '9.9.9' }), true, '9.9.9', ''],
  [json({ ...HEALTH, api: API + 1 }), false, 'Reload the page', 'Reload the page'],
  [new Response('', { status: 404 }), false, 'not enabled', 'not enabled'],
  [new Response('', { status: 503 }), false, '503', '']
])('checks the readiness with response %#', async (answer, available, problem, absent) => {
  const { rest: api } = rest(() => answer.clone());
  const readiness = await checkReadiness(api, trans);
  expect(readiness.available).toBe(available);
  expect(readiness.problem).toContain(problem);
  expect(readiness.problem === '').toBe(problem === '');
  const why = await absenceReason(api, trans);
  expect(why === '').toBe(absent === '');
  expect(why).toContain(absent);
});

test('rejects a request that is aborted by its caller with an AbortError', async () => {
  const controller = new AbortController();
  const { rest: api } = rest(
    request =>
      new Promise((_, reject) => {
        request.signal.addEventListener('abort', () => {
          reject(request.signal.reason as Error);
        });
      })
  );
  const query = { text: 'x', regex: false, matchCase: false, from: 0, backward: false, limit: 1 };
  const search = api.search('job-20260101-abcd', WHERE, query, () => undefined, controller.signal);
  controller.abort();
  const problem: unknown = await search.then(
    () => undefined,
    (reason: unknown) => reason
  );
  expect(isAbort(problem)).toBe(true);
});
