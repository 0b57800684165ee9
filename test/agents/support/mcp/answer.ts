// What an MCP server with one tool, `read`, says.
export interface McpRequest {
  readonly id?: number;
  readonly method: string;
  readonly params?: { readonly protocolVersion?: string };
}

/** Null: it was a notice, which nobody answers. */
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
  const said = result ? { result } : { error: { code: -32_601, message: `There is no ${method} here.` } };
  return JSON.stringify({ jsonrpc: '2.0', id, ...said });
}
