import type { PublicEvent, PublicEventKind } from '../../core/public/event.ts';

/** What is done about events, by their kind. Other kinds are passed over. */
export type Handlers = { readonly [K in PublicEventKind]?: (event: PublicEvent & { readonly kind: K }) => void };

export function handle(handlers: Handlers, event: PublicEvent): void {
  (handlers[event.kind] as ((event: PublicEvent) => void) | undefined)?.(event);
}
