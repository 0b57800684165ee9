// The answers of an MCP server with one tool, `read`.
export interface McpRequest {
  readonly id?: number;
  readonly method: string;
  readonly params?: { readonly protocolVersion?: string };
}

/** Returns the answer as JSON. `read` gives the result of the tool. Null: the message is a notification, which has no answer. */
export function mcpAnswer({ id, method, params }: McpRequest, read: () => string): string | null {
  if (id === undefined) return null;
  const results: Record<string, () => object> = {
    initialize: () => ({
      protocolVersion: params?.protocolVersion,
      capabilities: { tools: {} },
      serverInfo: { name: 'notes', version: '1' },
    }),
    'tools/list': () => ({ tools: [{ name: 'read', description: 'Reads a note.', inputSchema: { type: 'object' } }] }),
    'tools/call': () => ({ content: [{ type: 'text', text: read() }] }),
  };
  const result = results[method]?.();
  const outcome = result ? { result } : { error: { code: -32_601, message: `Method not found: ${method}` } };
  return JSON.stringify({ jsonrpc: '2.0', id, ...outcome });
}
