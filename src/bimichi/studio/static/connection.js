// Requests, and the socket, which connects again by itself. Addresses are relative, so that the token stays in them.

import { Events } from "./events.js";

const FIRST_PAUSE = 300;
const LONGEST_PAUSE = 4000;

export class Refused extends Error {}

async function answerOf(response) {
  const text = await response.text();
  let answer = {};
  try {
    answer = JSON.parse(text);
  } catch {
    answer = { problem: text.trim() || `The server answered ${response.status}.` };
  }
  if (!response.ok || answer.problem) throw new Refused(answer.problem ?? `The server answered ${response.status}.`);
  return answer;
}

export async function getJson(path) {
  return answerOf(await fetch(path, { cache: "no-store" }));
}

export async function getBytes(path, signal) {
  const response = await fetch(path, { signal, cache: "no-store" });
  if (!response.ok) await answerOf(response);
  return response.arrayBuffer();
}

export async function post(path, body = {}) {
  const raw = body instanceof Blob;
  const type = raw ? "application/octet-stream" : "application/json";
  const sent = raw ? body : JSON.stringify(body);
  return answerOf(await fetch(path, { method: "POST", headers: { "content-type": type }, body: sent }));
}

export class Connection extends Events {
  constructor() {
    super();
    this.pause = FIRST_PAUSE;
    this.tab = crypto.randomUUID?.() ?? String(Math.random());
    this.connected = false;
  }

  connect() {
    const address = new URL("socket", location.href);
    address.protocol = address.protocol.replace("http", "ws");
    this.socket = new WebSocket(address);
    this.socket.binaryType = "arraybuffer";
    this.socket.addEventListener("open", () => {
      this.pause = FIRST_PAUSE;
      this.connected = true;
      this.send({ type: "hello", tab: this.tab });
      this.tell("connected");
    });
    this.socket.addEventListener("message", ({ data }) => {
      if (typeof data !== "string") return this.tell("map", data);
      const message = JSON.parse(data);
      this.tell(message.type, message);
    });
    this.socket.addEventListener("close", () => {
      if (this.connected) this.tell("lost");
      this.connected = false;
      setTimeout(() => this.connect(), this.pause);
      this.pause = Math.min(LONGEST_PAUSE, this.pause * 1.7);
    });
  }

  // Whether it could be sent; labels that could not are sent again after the next hello.
  send(message) {
    if (this.socket?.readyState !== WebSocket.OPEN) return false;
    this.socket.send(JSON.stringify(message));
    return true;
  }
}
