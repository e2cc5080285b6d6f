#include <openssl/err.h>
#include <openssl/pem.h>

#include "pki/internal/openssl.h"
#include "pki/pki.h"

namespace optcache::pki {

Result<std::string> MakeKey() {
  const Key key(EVP_EC_gen("P-256"));
  if (key == nullptr) return Error(OpensslStatus("make a key"));
  const Bio bio = Writer();
  if (PEM_write_bio_PKCS8PrivateKey(bio.get(), key.get(), nullptr, nullptr, 0, nullptr, nullptr) !=
      1) {
    return Error(OpensslStatus("write a key"));
  }
  return TextOf(bio);
}

Result<std::string> PublicKeyOf(std::string_view key) {
  ASSIGN_OR_RETURN(const Key read, ReadPrivateKey(key));
  return PublicKeyPem(read.get());
}

Status KeyMatches(std::string_view key, std::string_view certificate) {
  ASSIGN_OR_RETURN(const Key own, ReadPrivateKey(key));
  ASSIGN_OR_RETURN(const X509Certificate read, ReadCertificate(certificate));
  const EVP_PKEY* const certified = X509_get0_pubkey(read.get());
  const bool match = certified != nullptr && EVP_PKEY_eq(own.get(), certified) == 1;
  ERR_clear_error();
  return match ? OkStatus() : Bad("the private key is not that of the certificate");
}

}  // namespace optcache::pki
