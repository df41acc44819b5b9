#include "data/text/input_stream.hpp"

#include <zstd.h>

#include <vector>

#include "core/error.hpp"
#include "io/posix_file.hpp"

namespace t3d {
namespace {

class PlainStream final : public InputStream {
 public:
  PlainStream(const std::string& path, index_t begin) : file_(path), at_(begin) {}
  index_t read(char* out, index_t most) override {
    const index_t now = file_.read_up_to(at_, out, most);
    at_ += now;
    return now;
  }

 private:
  FileReader file_;
  index_t at_ = 0;
};

class ZstdStream final : public InputStream {
 public:
  explicit ZstdStream(const std::string& path)
      : file_(path),
        context_(ZSTD_createDStream(), ZSTD_freeDStream),
        packed_(ZSTD_DStreamInSize()) {
    if (!context_) throw_error(ExitCode::unavailable, "no memory to decompress {}", path);
    // Files of `zstd --long` need as much.
    constexpr int kWindowBits = 27;
    ZSTD_DCtx_setParameter(context_.get(), ZSTD_d_windowLogMax, kWindowBits);
  }
  index_t read(char* out, index_t most) override {
    ZSTD_outBuffer to{out, static_cast<std::size_t>(most), 0};
    while (to.pos == 0) {
      if (from_.pos == from_.size && !fill()) return 0;
      const std::size_t left = ZSTD_decompressStream(context_.get(), &to, &from_);
      if (ZSTD_isError(left) != 0)
        throw_error(ExitCode::io, "{} is damaged, or no zstd file: {}", file_.path(),
                    ZSTD_getErrorName(left));
      inside_ = left != 0;
    }
    return static_cast<index_t>(to.pos);
  }

 private:
  bool fill() {
    const index_t now = file_.read_up_to(at_, packed_.data(), std::ssize(packed_));
    at_ += now;
    from_ = {packed_.data(), static_cast<std::size_t>(now), 0};
    if (now == 0 && inside_)
      throw_error(ExitCode::io, "{} is not whole: its compressed text ends early", file_.path());
    return now > 0;
  }

  FileReader file_;
  std::unique_ptr<ZSTD_DStream, std::size_t (*)(ZSTD_DStream*)> context_;
  std::vector<char> packed_;
  ZSTD_inBuffer from_{nullptr, 0, 0};
  index_t at_ = 0;
  bool inside_ = false;  // a frame
};

}  // namespace

bool is_compressed(const std::string& path) { return path.ends_with(".zst"); }

std::unique_ptr<InputStream> open_stream(const std::string& path, index_t begin) {
  if (!is_compressed(path)) return std::make_unique<PlainStream>(path, begin);
  T3D_CHECK(begin == 0, "{} from byte {}", path, begin);
  return std::make_unique<ZstdStream>(path);
}

}  // namespace t3d
