/**
 * Types of the server's responses about the job list, the cluster and the server.
 *
 * Documented in docs/server.md. All values come from a cluster, a container or a notebook: show
 * them as text, never as markup, and follow addresses only through `safeLink`.
 */

import type { State } from './job_types';

/** A row of the job list. */
export interface IJobRow {
  job_id: string;
  name: string;
  state: State;
  user: string;
  queue: string | null;
  backend: string;
  created: number | null;
  started: number | null;
  finished: number | null;
  progress: number | null;
  tasks: number;
  gpus: number;
  /** Why the job waits or ended, one sentence. */
  detail: string;
  application_id: string | null;
  notebook: string;
  cell_id: string;
  /** The workflow, run and node that started the job; empty if it was not started by a workflow. */
  workflow: string;
  workflow_run: string;
  workflow_node: string;
}

export interface IJobsPage {
  jobs: IJobRow[];
  total: number;
  next: string | null;
  /** Why the list may be outdated, one sentence; empty if it is current. */
  problem: string;
}

export interface IQueue {
  name: string;
  state: string;
  /** Guaranteed and used share of the cluster, in percent. */
  capacity: number | null;
  used: number | null;
  gpus_total: number | null;
  gpus_used: number | null;
  /** GPUs that a job could get in this queue now, after the shares of other queues. */
  gpus_free: number | null;
  /** Applications that wait for a container, including those that already have some. */
  pending: number;
  running: number;
}

export interface INode {
  host: string;
  state: string;
  labels: string[];
  memory_total: number;
  memory_used: number;
  vcores_total: number;
  vcores_used: number;
  gpus_total: number;
  gpus_used: number;
  /** Job ids or application ids that hold GPUs here. */
  held_by: string[];
}

/** An application that holds GPUs. */
export interface IGpuHolder {
  application_id: string;
  /** null: not a Submarine job. */
  job_id: string | null;
  name: string;
  user: string;
  queue: string;
  gpus: number;
  /** Hosts on which it certainly holds GPUs; empty if they cannot be derived. */
  hosts: string[];
  /** Whether it belongs to the user of this server. */
  mine: boolean;
}

export interface ICluster {
  backend: string;
  queues: IQueue[];
  nodes: INode[];
  /** Limited to the applications that the ResourceManager shows to this user. */
  holders?: IGpuHolder[];
  gpus_total: number;
  gpus_free: number;
  /** Why the information is incomplete, one sentence. */
  problem: string;
}

export interface IHealth {
  version: string;
  api: number;
  backend: string | null;
  profile: string;
  reachable: boolean;
  problem: string;
}

/** The body of an error response. */
export interface IErrorBody {
  error: string;
  fix: string;
  code: string;
}

/** A kernel that the server is starting in a container. */
export interface IKernelStart {
  /** Name of the kernelspec. */
  readonly kernel: string;
  /** The document of the kernel. */
  readonly notebook: string;
  /** Progress or the reason for waiting; empty if unknown. */
  readonly words: string;
}
