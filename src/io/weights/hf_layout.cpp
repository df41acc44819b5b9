#include "io/weights/hf_layout.hpp"

#include <fmt/format.h>

#include "core/error.hpp"

namespace t3d {
namespace {

class TensorList {
 public:
  explicit TensorList(const ModelConfig& model) : m_(model) {}

  std::vector<HfTensor> gpt2() {
    matrix("transformer.wte.weight", "wte.weight", m_.vocab, m_.hidden).vocabulary = true;
    matrix("transformer.wpe.weight", "wpe.weight", m_.context, m_.hidden).positions = true;
    for (index_t n = 0; n < m_.layers; ++n) {
      const std::string from = fmt::format("transformer.h.{}", n), to = block(n);
      both(from + ".ln_1", to + ".norm1", m_.hidden);
      conv1d(from + ".attn.c_attn", to + ".attn.qkv", 3 * m_.hidden, m_.hidden);
      conv1d(from + ".attn.c_proj", to + ".attn.proj", m_.hidden, m_.hidden);
      both(from + ".ln_2", to + ".norm2", m_.hidden);
      conv1d(from + ".mlp.c_fc", to + ".mlp.up", m_.ffn, m_.hidden);
      conv1d(from + ".mlp.c_proj", to + ".mlp.down", m_.hidden, m_.ffn);
    }
    both("transformer.ln_f", "final_norm", m_.hidden);
    head();
    return std::move(all_);
  }

  std::vector<HfTensor> llama() {
    const index_t queries = m_.query_columns(), keys = m_.kv_heads * m_.head_size();
    matrix("model.embed_tokens.weight", "wte.weight", m_.vocab, m_.hidden).vocabulary = true;
    for (index_t n = 0; n < m_.layers; ++n) {
      const std::string from = fmt::format("model.layers.{}", n), to = block(n);
      vector(from + ".input_layernorm.weight", to + ".norm1.weight", 0, m_.hidden);
      const std::string qkv = to + ".attn.qkv";
      rows(from + ".self_attn.q_proj", qkv, 0, queries, m_.hidden, m_.qkv_bias());
      rows(from + ".self_attn.k_proj", qkv, queries, keys, m_.hidden, m_.qkv_bias());
      rows(from + ".self_attn.v_proj", qkv, queries + keys, keys, m_.hidden, m_.qkv_bias());
      if (m_.qk_norm)
        for (const char* name : {"q_norm", "k_norm"})
          vector(fmt::format("{}.self_attn.{}.weight", from, name),
                 fmt::format("{}.attn.{}.weight", to, name), 0, m_.head_size());
      rows(from + ".self_attn.o_proj", to + ".attn.proj", 0, m_.hidden, queries, m_.proj_bias());
      vector(from + ".post_attention_layernorm.weight", to + ".norm2.weight", 0, m_.hidden);
      const std::string gate_up = to + ".mlp.gate_up";
      rows(from + ".mlp.gate_proj", gate_up, 0, m_.ffn, m_.hidden, m_.mlp_bias());
      rows(from + ".mlp.up_proj", gate_up, m_.ffn, m_.ffn, m_.hidden, m_.mlp_bias());
      rows(from + ".mlp.down_proj", to + ".mlp.down", 0, m_.hidden, m_.ffn, m_.mlp_bias());
    }
    vector("model.norm.weight", "final_norm.weight", 0, m_.hidden);
    head();
    return std::move(all_);
  }

 private:
  static std::string block(index_t n) { return fmt::format("blocks.{}", n); }

  HfTensor& add(const std::string& name, const std::string& ours, const Box& box, bool is_vector,
                bool transposed = false) {
    all_.push_back({name, is_vector, transposed, ours, box});
    return all_.back();
  }
  HfTensor& matrix(const std::string& name, const std::string& ours, index_t rows, index_t cols) {
    return add(name, ours, {0, 0, rows, cols}, false);
  }
  void vector(const std::string& name, const std::string& ours, index_t first, index_t count) {
    add(name, ours, {0, first, 1, count}, true);
  }
  /// Weight and bias of a norm.
  void both(const std::string& name, const std::string& ours, index_t count) {
    vector(name + ".weight", ours + ".weight", 0, count);
    vector(name + ".bias", ours + ".bias", 0, count);
  }
  /// GPT-2's linears keep their weights as [in, out].
  void conv1d(const std::string& name, const std::string& ours, index_t rows, index_t cols) {
    add(name + ".weight", ours + ".weight", {0, 0, rows, cols}, false, true);
    vector(name + ".bias", ours + ".bias", 0, rows);
  }
  /// Some outputs of one of our linears.
  void rows(const std::string& name, const std::string& ours, index_t first, index_t count,
            index_t cols, bool bias) {
    add(name + ".weight", ours + ".weight", {first, 0, count, cols}, false);
    if (bias) vector(name + ".bias", ours + ".bias", first, count);
  }
  void head() {
    if (!m_.tied_embeddings)
      matrix("lm_head.weight", "head.weight", m_.vocab, m_.hidden).vocabulary = true;
  }

  const ModelConfig& m_;
  std::vector<HfTensor> all_;
};

void add_unless(bool right, std::vector<std::string>& lines, std::string text) {
  if (!right) lines.push_back(std::move(text));
}

std::vector<std::string> gpt2_obstacles(const ModelConfig& m) {
  std::vector<std::string> lines;
  add_unless(m.norm == NormKind::layer, lines, fmt::format("model.norm = \"{}\"", m.norm));
  add_unless(m.activation == Activation::gelu_tanh, lines,
             fmt::format("model.activation = \"{}\"", m.activation));
  add_unless(m.bias, lines, "model.bias = false");
  add_unless(m.qkv_bias() && m.proj_bias(), lines,
             fmt::format("model.attention_bias = \"{}\"", m.attention_bias));
  add_unless(m.kv_heads == m.heads, lines, fmt::format("model.kv_heads = {}", m.kv_heads));
  add_unless(m.query_columns() == m.hidden, lines,
             fmt::format("model.head_size = {}", m.head_size()));
  add_unless(!m.qk_norm, lines, "model.qk_norm = true");
  return lines;
}

std::vector<std::string> llama_obstacles(const ModelConfig& m) {
  std::vector<std::string> lines;
  add_unless(m.norm == NormKind::rms, lines, fmt::format("model.norm = \"{}\"", m.norm));
  add_unless(m.activation == Activation::swiglu, lines,
             fmt::format("model.activation = \"{}\"", m.activation));
  if (m.qk_norm || (m.qkv_bias() && !m.proj_bias()))
    add_unless(!m.mlp_bias(), lines, "model.bias = true (beside those of attention)");
  add_unless(!m.qk_norm || m.qkv_bias() == m.proj_bias(), lines,
             fmt::format("model.attention_bias = \"{}\" with model.qk_norm", m.attention_bias));
  return lines;
}

}  // namespace

std::vector<std::string> hf_obstacles(const ModelConfig& model) {
  return model.position == Position::learned ? gpt2_obstacles(model) : llama_obstacles(model);
}

HfFamily hf_family(const ModelConfig& model) {
  const std::vector<std::string> lines = hf_obstacles(model);
  if (!lines.empty())
    throw_error(ExitCode::config, "no family of Hugging Face's with {} has\n  {}",
                model.position == Position::learned ? "learned positions (GPT-2)"
                                                    : "rope (Llama, Qwen 2, Qwen 3)",
                fmt::join(lines, "\n  "));
  if (model.position == Position::learned) return HfFamily::gpt2;
  if (model.qk_norm) return HfFamily::qwen3;
  if (model.qkv_bias() && !model.proj_bias()) return HfFamily::qwen2;
  // transformers 5 refuses a Llama of such sizes.
  const bool biases = model.qkv_bias() || model.proj_bias() || model.mlp_bias();
  return model.hidden % model.heads != 0 && !biases ? HfFamily::mistral : HfFamily::llama;
}

std::vector<HfTensor> hf_tensors(const ModelConfig& model) {
  return hf_family(model) == HfFamily::gpt2 ? TensorList(model).gpt2() : TensorList(model).llama();
}

bool is_no_weight(const std::string& name) {
  return name.ends_with(".attn.bias") || name.ends_with(".attn.masked_bias") ||
         name.ends_with(".rotary_emb.inv_freq");
}

}  // namespace t3d
