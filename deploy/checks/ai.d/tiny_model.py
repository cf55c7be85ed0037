"""Writes a small language model with random weights. Its words make no sense; a grammar makes them fit a schema all the same."""
import sys
import gguf
import numpy

WIDTH, HEADS, LAYERS, INNER, CONTEXT = 64, 4, 2, 128, 4096


def vocabulary():
    tokens, scores, kinds = [b"<unk>", b"<s>", b"</s>"], [0.0, 0.0, 0.0], [2, 3, 3]
    for byte in range(128):  # so that whatever it says is UTF-8
        tokens.append(f"<0x{byte:02X}>".encode())
        scores.append(0.0)
        kinds.append(6)
    for code in range(32, 127):
        tokens.append("▁".encode() if code == 32 else bytes([code]))
        scores.append(-float(code))
        kinds.append(1)
    return tokens, scores, kinds


def main(path):
    random = numpy.random.default_rng(7)
    tokens, scores, kinds = vocabulary()
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_context_length(CONTEXT)
    writer.add_embedding_length(WIDTH)
    writer.add_block_count(LAYERS)
    writer.add_feed_forward_length(INNER)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(HEADS)
    writer.add_rope_dimension_count(WIDTH // HEADS)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_vocab_size(len(tokens))
    writer.add_tokenizer_model("llama")
    writer.add_token_list(tokens)
    writer.add_token_scores(scores)
    writer.add_token_types(kinds)
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    writer.add_chat_template(
        "{% for m in messages %}{{ m['role'] }}: {{ m['content'] }}\n{% endfor %}assistant:")

    def tensor(name, *shape):
        writer.add_tensor(name, random.normal(0, 0.3, shape).astype(numpy.float32))

    def ones(name):
        writer.add_tensor(name, numpy.ones(WIDTH, numpy.float32))

    tensor("token_embd.weight", len(tokens), WIDTH)
    tensor("output.weight", len(tokens), WIDTH)
    ones("output_norm.weight")
    for n in range(LAYERS):
        ones(f"blk.{n}.attn_norm.weight")
        ones(f"blk.{n}.ffn_norm.weight")
        for part in ("attn_q", "attn_k", "attn_v", "attn_output"):
            tensor(f"blk.{n}.{part}.weight", WIDTH, WIDTH)
        tensor(f"blk.{n}.ffn_gate.weight", INNER, WIDTH)
        tensor(f"blk.{n}.ffn_up.weight", INNER, WIDTH)
        tensor(f"blk.{n}.ffn_down.weight", WIDTH, INNER)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


main(sys.argv[1])
