"""Django's settings for the tests: what django-celery-outbox and django-celery-beat need, and the admin with its actions."""

import json
import os

SECRET_KEY = "tests"
ALLOWED_HOSTS = ["*"]
INSTALLED_APPS = [
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.messages",
    "django.contrib.sessions",
    "django_celery_beat",
    "django_celery_outbox",
]
MIDDLEWARE = [
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
]
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ],
        },
    },
]
SILENCED_SYSTEM_CHECKS = ["celery_outbox.E001"]  # SQLite has no SKIP LOCKED: tasks are enqueued, and no relay takes them
DATABASES = {"default": json.loads(os.environ["SHOP_DATABASE"])}
MIGRATION_MODULES = dict.fromkeys(["admin", "auth", "contenttypes", "django_celery_beat", "sessions"])  # their tables without their migrations
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
USE_TZ = True
CELERY_OUTBOX_APP = "shop.app"
CELERY_OUTBOX_PII_REDACTOR = "redact.redact"
LOGGING_CONFIG = None
