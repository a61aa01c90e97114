/** The latest state of a workflow run. */

import type { IRunPicture } from '../tokens';
import type { FeedMessage } from './feed';
import { NewestFeed } from './feed';
import type { ClientMessage } from './wire_types';

export class WorkflowFeed extends NewestFeed<IRunPicture> {
  constructor(
    readonly run: string,
    readonly url: string
  ) {
    super();
  }

  request(id: number): ClientMessage {
    return { op: 'subscribe', id, kind: 'workflow', run: this.run, url: this.url };
  }

  protected read(message: FeedMessage): IRunPicture | null {
    return message.type === 'workflow' ? { time: message.time, html: message.html } : null;
  }
}
