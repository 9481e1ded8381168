"""Which paths hold credentials. Policy is data: the tables say all; `reading` applies them.

Every pattern is compared without case, because some file systems ignore it.
"""

# A run of path components, anywhere in the path: another user's home is as private as ours.
FOLDERS: tuple[tuple[str, str], ...] = (
    (".aws", "AWS credentials"),
    (".ssh", "SSH keys"),
    (".gnupg", "GnuPG keys"),
    (".gpg", "GnuPG keys"),
    (".config/gcloud", "Google Cloud credentials"),
    (".config/gh", "GitHub command line credentials"),
    (".azure", "Azure credentials"),
    (".docker/config.json", "registry credentials"),
    (".config/containers/auth.json", "registry credentials"),
    (".kube", "cluster credentials"),
    (".terraform.d/credentials.tfrc.json", "Terraform credentials"),
    (".password-store", "password store"),
    (".local/share/keyrings", "keyring"),
    ("library/keychains", "keychain"),
    ("run/secrets", "mounted secrets"),
)

# Shell patterns on the whole path.
SYSTEM: tuple[tuple[str, str], ...] = (
    ("/etc/shadow*", "password hashes"),
    ("/etc/gshadow*", "password hashes"),
    ("/etc/master.passwd", "password hashes"),
    ("/etc/security/opasswd", "password hashes"),
    ("/etc/sudoers*", "system policy"),
    ("/etc/ssl/private/*", "private key"),
    ("/etc/pki/*/private/*", "private key"),
    ("/etc/kubernetes/*.conf", "cluster credentials"),
    ("/etc/rancher/*.yaml", "cluster credentials"),
    ("/var/lib/kubelet/pods/*", "mounted secrets"),
    ("/proc/*/environ", "process environment"),
    ("/proc/*/mem", "process memory"),
    ("/proc/*/cmdline", "process arguments"),
    ("/proc/kcore", "kernel memory"),
)

# Shell patterns on the file name. Those in NOT_SECRET are let through.
NAMES: tuple[tuple[str, str], ...] = (
    ("id_rsa*", "private key"),
    ("id_dsa*", "private key"),
    ("id_ecdsa*", "private key"),
    ("id_ed25519*", "private key"),
    ("*.pem", "private key"),
    ("*.key", "private key"),
    ("*.ppk", "private key"),
    ("*.p12", "private key"),
    ("*.pfx", "private key"),
    ("*.jks", "key store"),
    ("*.keystore", "key store"),
    ("*.kdbx", "password store"),
    (".env", "environment file"),
    (".env.*", "environment file"),
    ("*.env", "environment file"),
    (".envrc", "environment file"),
    (".npmrc", "package registry credentials"),
    (".pypirc", "package registry credentials"),
    (".netrc", "network credentials"),
    ("_netrc", "network credentials"),
    (".git-credentials", "git credentials"),
    (".pgpass", "database password"),
    (".my.cnf", "database password"),
    (".htpasswd", "password hashes"),
    (".dockercfg", "registry credentials"),
    (".vault-token", "vault token"),
    (".s3cfg", "storage credentials"),
    (".boto", "storage credentials"),
    ("credentials", "credential file"),
    ("credentials.json", "credential file"),
    ("credentials.toml", "credential file"),
    ("application_default_credentials.json", "Google Cloud credentials"),
    ("kubeconfig", "cluster credentials"),
    ("*.kubeconfig", "cluster credentials"),
)
NOT_SECRET: tuple[str, ...] = (
    "id_*.pub",
    ".env.example",
    ".env.sample",
    ".env.template",
    "example.env",
)

# Shell patterns below our own home folder.
OWN_HOME: tuple[tuple[str, str], ...] = (
    ("audit.db*", "audit log"),
    ("keys", "afterwatch keys"),
    ("keys/*", "afterwatch keys"),
    ("vault*", "afterwatch vault"),
    ("credentials*", "afterwatch credentials"),
    ("*.token", "afterwatch credentials"),
)
