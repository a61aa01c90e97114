/** Kernels that the server is starting in containers. */

import type { FeedMessage } from './feed';
import { NewestFeed } from './feed';
import type { IKernelStart } from './list_types';
import type { ClientMessage } from './wire_types';

export class StartsFeed extends NewestFeed<readonly IKernelStart[]> {
  override readonly card = false;

  request(id: number): ClientMessage {
    return { op: 'subscribe', id, kind: 'starts' };
  }

  protected read(message: FeedMessage): readonly IKernelStart[] | null {
    return message.type === 'starts' ? message.starts : null;
  }
}
