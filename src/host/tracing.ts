import { ThroughlineError } from '../core/errors.ts';

/** How long we wait for the collector. */
const SEND_MS = 2_000;

/** Whether the environment names a collector, by the variables of OpenTelemetry. */
export function isTraced(env: NodeJS.ProcessEnv): boolean {
  return Boolean(env.OTEL_EXPORTER_OTLP_ENDPOINT || env.OTEL_EXPORTER_OTLP_TRACES_ENDPOINT);
}

/** Sends spans to the collector that the environment names. Throws `refused` when the packages for it are missing. */
export async function startTracing(version: string) {
  const { TracerProvider, BatchSpanProcessor, OTLPTraceExporter, resourceFromAttributes } = await packages();
  const name = process.env.OTEL_SERVICE_NAME || 'throughline';
  const provider = new TracerProvider({
    resource: resourceFromAttributes({ 'service.name': name, 'service.version': version }),
    spanProcessors: [new BatchSpanProcessor({ exporter: new OTLPTraceExporter({ timeoutMillis: SEND_MS }) })],
  });
  return {
    tracer: provider.getTracer('throughline', version),
    /** Sends the remaining spans. Never throws: an unreachable collector must not keep a server from ending. */
    close: () => provider.shutdown().catch(() => {}),
  };
}

async function packages() {
  try {
    const [sdk, exporter, resources] = await Promise.all([
      import('@opentelemetry/sdk-trace'),
      import('@opentelemetry/exporter-trace-otlp-http'),
      import('@opentelemetry/resources'),
    ]);
    return { ...sdk, ...exporter, ...resources };
  } catch (cause) {
    throw new ThroughlineError(
      'refused',
      'OTEL_EXPORTER_OTLP_ENDPOINT names a collector, but the OpenTelemetry packages are not installed.',
      {
        hint:
          'Run "npm install @opentelemetry/sdk-trace @opentelemetry/exporter-trace-otlp-http @opentelemetry/resources", ' +
          'or unset the variable.',
        cause,
      },
    );
  }
}
