/**
 * What the server extension answers about all there is: the list of jobs, the cluster, itself.
 *
 * The same words as in docs/server.md. Everything in here came from a cluster, a container or a
 * notebook: it is text to be shown, never markup, never a place to go to without `safeLink`.
 */

import type { State } from './job_types';

/** A row of the jobs list. */
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
  /** Why it waits or ended, one sentence. */
  detail: string;
  application_id: string | null;
  notebook: string;
  cell_id: string;
  /** What started it, if a workflow did: its name, its run, the node; else empty. */
  workflow: string;
  workflow_run: string;
  workflow_node: string;
}

export interface IJobsPage {
  jobs: IJobRow[];
  total: number;
  next: string | null;
  /** Why the list may be old, one sentence; empty when it is fresh. */
  problem: string;
}

export interface IQueue {
  name: string;
  state: string;
  /** Percent of the cluster that is guaranteed, and in use. */
  capacity: number | null;
  used: number | null;
  gpus_total: number | null;
  gpus_used: number | null;
  /** What a job could get there now: no other queue holds it either. */
  gpus_free: number | null;
  /** Applications that wait for a container, also those that have some already. */
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

/** Somebody's application that holds GPUs. */
export interface IGpuHolder {
  application_id: string;
  /** null: no job of Submarine. */
  job_id: string | null;
  name: string;
  user: string;
  queue: string;
  gpus: number;
  /** Where it certainly holds some; empty: that does not follow from what the cluster tells. */
  hosts: string[];
  /** Whether it is of this server's user. */
  mine: boolean;
}

export interface ICluster {
  backend: string;
  queues: IQueue[];
  nodes: INode[];
  /** As far as the ResourceManager shows them to this user. */
  holders?: IGpuHolder[];
  gpus_total: number;
  gpus_free: number;
  /** Why nothing better can be said, one sentence. */
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

/** What goes wrong, as the server says it. */
export interface IErrorBody {
  error: string;
  fix: string;
  code: string;
}

/** A kernel in a container that the server starts just now. */
export interface IKernelStart {
  /** Name of its kernelspec. */
  readonly kernel: string;
  /** The document that it is for. */
  readonly notebook: string;
  /** How far it is, or what it waits for; empty: nothing is known. */
  readonly words: string;
}
