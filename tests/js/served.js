// Resolve modules as the studio serves them: those that it shares with the report lie in a folder beside its own.

import { registerHooks } from "node:module";

const SHARED = "./report/";
const REPORT = new URL("../../src/bimichi/report/", import.meta.url);

registerHooks({
  resolve: (path, context, next) =>
    next(path.startsWith(SHARED) ? new URL(path.slice(SHARED.length), REPORT).href : path, context),
});
